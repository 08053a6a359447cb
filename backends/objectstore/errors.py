"""What the driver's errors mean for whoever runs the store: each with the next step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trident.states.errors import StateUnavailableError
from trident.states.printable import HIDDEN, masked

_DOUBT = "Whether the last write took place is unknown; it is tried again."

OPTIONS = "Look at the options of the URL, and at what the environment says of the store."

_MEANINGS = (
    (
        r"\b169\.254\.|metadata\.google|token request",
        "no login was found: neither options nor environment have one, nor has this machine",
        "Give it as the store's own tools take it, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for "
        "one, or as options of the URL.",
    ),
    (r"kind: Timeout", "no answer in time", f"{_DOUBT} Give a larger timeout= if it only is slow."),
    (
        r"kind: Connect",
        "no connection",
        "Check endpoint= (or region=), and whether the store is up and its certificate is known.",
    ),
    (r"HTTP error", "the connection was cut", f"{_DOUBT} Look at the store's log: did it restart?"),
    (
        r"status code: 40[13]",
        "it refuses the login",
        "It has to be allowed to read, put and list objects there.",
    ),
    (
        r"NoSuchBucket|ContainerNotFound|status code: 404",
        "the bucket isn't there",
        "Make it, or give another; a wrong region= or endpoint= has other ones.",
    ),
    (r"status code: (429|5\d\d)", "it can't serve this now", f"{_DOUBT} Look at the store's log."),
)


def explained(said: str, where: str, hidden: Sequence[str] = ()) -> StateUnavailableError:
    """Return what an error means that the driver raised; none of `hidden` is shown.

    Examples
    --------
    >>> said = "status code: 403 Forbidden: <Error><Code>AccessDenied</Code>"
    >>> print(explained(said, "s3://bucket/words"))
    s3://bucket/words: it refuses the login (403 Forbidden, AccessDenied). It has to be allowed ...
    """
    told = [*re.findall(r"status code: (\d+ [A-Za-z ]+)", said)[:1]]
    told += re.findall(r"<Code>(\w+)</Code>", said)[:1]
    told += re.findall(r'(?:message|error): "([\w ,.:-]+)"', said)[:1]
    for pattern, problem, advice in _MEANINGS:
        if re.search(pattern, said):
            answer = f" ({', '.join(told)})" if told else ""
            return StateUnavailableError(where, problem + answer, advice)
    return StateUnavailableError(where, quoted(said, hidden), OPTIONS)


def quoted(said: str, hidden: Sequence[str] = ()) -> str:
    """Return what the driver has said, where it means nothing else; none of `hidden` is shown."""
    line = re.sub(r"(decode [\w ]+):.*", r"\1", said.partition("\n")[0])  # it quotes the file
    for each in hidden:
        line = line.replace(each, HIDDEN)
    return f"obstore says: {masked(line)}".rstrip(". ")
