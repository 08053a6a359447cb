"""What clients share: if one server can't answer, the next one is asked."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Any, ClassVar, Self, TypeVar
from urllib.parse import urlsplit

from trident.client.server import LostError, Server, Within
from trident.drpc.calls import check_seconds
from trident.drpc.errors import (
    AnswerLostError,
    DRPCClosedError,
    DRPCElsewhereError,
    DRPCError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    DRPCUsageError,
    NoServerError,
)
from trident.states.printable import masked

T = TypeVar("T")
PORTS = {"http": 3774, "https": 3774, "thrift": 3772, "thrifts": 3772}
_LONGEST = 86_400.0
"""The most seconds of a call, a day: a socket takes no more than 24 days."""
_ELSEWHERE = (DRPCClosedError, DRPCElsewhereError, DRPCQueueFullError, DRPCUnavailableError)
"""Refusals of one server that another one may not share."""


class Client:
    """Asks servers; if one can't answer, the next one is asked.

    The server that answered last is asked first. May be called by any number of threads: each call
    has a connection for itself while it lasts.
    """

    _schemes: ClassVar[Collection[str]]
    _repeatable: ClassVar[bool]
    """Whether a request may be sent again to any server; else only to those that apply a request
    once by its id."""

    def __init__(
        self,
        *servers: str,
        timeout: float = 5.0,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        certfile: str | os.PathLike[str] | None = None,
        keyfile: str | os.PathLike[str] | None = None,
    ) -> None:
        name = type(self).__name__
        if not servers:
            raise DRPCUsageError(f"{name}: give a server", "", (), "As in 'localhost:3774'.")
        given: Sequence[Any] = servers
        for each in given:
            if not isinstance(each, str):
                advice = "A server is one text, as in 'localhost:3774'."
                raise DRPCUsageError(f"{name}: no server is", repr(each), (), advice)
        check_seconds(name, timeout)
        if token is not None and not token.isprintable():
            raise DRPCUsageError(f"{name}: a token is one line of text that can be shown")
        self._timeout = timeout
        secure = any("s://" in each for each in servers)
        tls = _tls_context(name, ca, certfile, keyfile) if secure else None
        self._servers = [_make_server(name, each, self._schemes, token, tls) for each in servers]
        self._first = 0

    def _ask(self, name: str, ask: Callable[[Any, Within], T], timeout: float | None) -> T:
        """Ask one server after the other, by `ask`.

        Raises AnswerLostError if the answer was lost and the request may not be repeated.
        """
        if timeout is not None:
            check_seconds(type(self).__name__, timeout)
        seconds = min(self._timeout if timeout is None else timeout, _LONGEST)
        began = monotonic()
        until = began + seconds
        problems: list[str] = []
        unreached = False
        refusal: DRPCError | None = None
        first = self._first
        for index in range(len(self._servers)):
            position = (first + index) % len(self._servers)
            server = self._servers[position]
            remaining = until - monotonic()
            if remaining <= 0:
                break
            try:
                within = Within(until, remaining / (len(self._servers) - index))
                try:
                    answer = ask(server, within)
                except LostError as error:
                    if not (self._repeatable or server.knows_ids):
                        problem = f"{server.address}: {error}"
                        raise AnswerLostError(name, problem) from error
                    # The server may only have ended an idle connection.
                    answer = ask(server, within)
            except TimeoutError as error:
                # The server may hang, so the next call begins with another one.
                self._first = (position + 1) % len(self._servers)
                if isinstance(error, DRPCTimeoutError):
                    raise
                break
            except _ELSEWHERE as error:
                if not (self._repeatable or server.knows_ids):
                    raise  # Storm's may have run it
                refusal = error
                problems.append(f"{server.address}: {error}")
            except (OSError, LostError, UnicodeError) as error:
                unreached = True
                problems.append(f"{server.address}: {error or type(error).__name__}")
            else:
                self._first = position
                return answer
        if refusal is not None and not (unreached and isinstance(refusal, DRPCElsewhereError)):
            raise refusal
        if refusal is not None or len(problems) == len(self._servers):
            raise NoServerError("; ".join(problems))  # the run's may be one of those unreached
        raise DRPCTimeoutError(name, monotonic() - began, 0)

    def close(self) -> None:
        """End the idle connections; may be repeated."""
        for server in self._servers:
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_server(
    name: str, address: str, schemes: Collection[str], token: str | None, tls: Any
) -> Server:
    text = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    more = parts.username or parts.password or parts.query or parts.fragment
    if parts.scheme not in schemes or not parts.hostname or parts.path not in ("", "/") or more:
        forms = " or ".join(f"{each}://host:port" for each in schemes if not each.endswith("s"))
        advice = f"Write host:port, {forms}."
        raise DRPCUsageError(f"{name}: this is no address of a server:", masked(text), (), advice)
    secure = tls if parts.scheme in ("https", "thrifts") else None
    place = parts.hostname, port or PORTS[parts.scheme], secure
    http = parts.scheme.startswith("http")
    if token is not None and not http:
        advice = "Use http://, or let the server answer the function to anyone ('*')."
        raise DRPCUsageError(f"{name}: Thrift carries no token, to", address, (), advice)
    try:
        if http:
            from trident.client.http_server import HTTPServer

            return HTTPServer(*place, token)
        from trident.client.thrift_server import ThriftServer

        return ThriftServer(*place)
    except ImportError as error:  # of an optional package
        what = f"{name}: it needs a package that is not installed ({error})"
        advice = 'Install it: pip install "trident-spark[drpc]".'
        raise DRPCUsageError(what, "", (), advice) from error


def _tls_context(name: str, ca: Any, certfile: Any, keyfile: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
        if certfile is not None:
            context.load_cert_chain(certfile, keyfile)
    except OSError as error:
        what = f"{name}: no certificate can be read of ca=, certfile=, keyfile= ({error})"
        raise DRPCUsageError(what) from error
    return context
