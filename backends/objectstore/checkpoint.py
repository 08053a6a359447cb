"""A checkpoint in an object store: an object for each log, replaced on condition of its tag."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

from trident.states.checkpoint_store import CheckpointStore
from trident.states.errors import MissingDriverError, StateUnavailableError, StateURLError
from trident.states.printable import HIDDEN, is_secret, masked

_CLASSES = {"s3": "S3Store", "az": "AzureStore", "gs": "GCSStore"}
_ABSENT = None, "create"
"""The entry, and the condition to put it, of an object that is missing."""
_STRANGE = {"e_tag": '"0"', "version": "1"}
"""A tag that no object has."""
_processes: set[int] = set()
"""The processes that have used the driver: this one, and those it was forked from."""
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
        "the bucket is missing",
        "Make it, or give another; a wrong region= or endpoint= has other buckets.",
    ),
    (r"status code: (429|5\d\d)", "it can't serve this now", f"{_DOUBT} Look at the store's log."),
)


class ObjectCheckpoint(CheckpointStore):
    """The logs of one checkpoint, as objects; asks the store when it is first used.

    An object is put on condition that it is missing, or that its tag is that of the last entry.
    There is no lock, because it would need a lease: the run that started last has the checkpoint.

    Parameters
    ----------
    scheme : str
        ``"s3"``, ``"az"`` or ``"gs"``.
    bucket, path : str
        The bucket, or Azure's container, and the beginning of all objects' names.
    timeout : float
        Seconds to wait for each answer.
    endpoint : str or None
        The store's address, if it is not that of its cloud.
    settings : str or bool
        Further settings of obstore for the store.

    Examples
    --------
    >>> checkpoint = ObjectCheckpoint("s3", "bucket", "words", endpoint="http://minio:9000")
    >>> checkpoint.place_of("a/b")
    's3://bucket/words/logs/a%2Fb at http://minio:9000'
    """

    def __init__(
        self, scheme: str, bucket: str, path: str, *, timeout: float = 10.0, **settings: str | bool
    ) -> None:
        if not 0 < timeout < 1e6:
            raise ValueError("timeout is above 0 seconds, and a million at most")
        self._root = f"{scheme}://{bucket}/{quote(path)}"
        places = (settings.get(name) for name in ("endpoint", "account_name"))
        self._at = "".join(f" at {place}" for place in places if place)
        self.where = self._root + self._at
        self._place = scheme, bucket, path
        self._settings = settings
        self._timeout = timedelta(seconds=timeout)
        self._known: dict[str, tuple[bytes, Any]] = {}

    def probe(self) -> str | None:
        """Try both conditions on an object that is put once: Google allows one a second."""
        self._put("probe", b"written at each start, to try the store", "overwrite")
        tried = {"that must not be there": "create", "that has another tag": _STRANGE}
        for wrong, mode in tried.items():
            if self._put("probe", b"the store ignores conditions", mode) is not None:
                return f"it has replaced an object on condition {wrong}: it ignores conditions"
        return None

    def release(self) -> None:
        """Do nothing: the driver's connections end by themselves."""

    def names(self) -> list[str]:
        with self._lend_store() as (obstore, store):
            found = [each["path"] for some in obstore.list(store, "logs") for each in some]
        return sorted(unquote(path.rpartition("/")[2]) for path in found)

    def read(self, name: str) -> bytes | None:
        with self._lend_store() as (obstore, store):
            try:
                found = obstore.get(store, _path(name))
                data = bytes(found.bytes())
            except FileNotFoundError:
                self._known.pop(name, None)
                return None
        self._known[name] = data, _tag(found.meta)
        return data

    def replace(self, name: str, new: bytes, expected: bytes | None) -> bool:
        known = self._known.get(name, _ABSENT)[0]
        if known != expected and (found := self.read(name)) != expected:
            return found == new
        _, mode = self._known.get(name, _ABSENT)
        if (tag := self._put(_path(name), new, mode)) is not None:
            self._known[name] = new, tag
            return True
        if (found := self.read(name)) == expected:
            problem = "it has refused to replace an entry that is still there"
            advice = "An earlier request may still be under way; it is tried again."
            raise StateUnavailableError(self.where, problem, advice)
        return found == new

    def place_of(self, name: str) -> str:
        return f"{self._root}/{_path(name)}{self._at}"

    def _put(self, path: str, data: bytes, mode: Any) -> dict[str, str] | None:
        """Put an object, and return its tag; None if the condition, `mode`, doesn't hold."""
        with self._lend_store() as (obstore, store):
            refused = obstore.exceptions
            try:
                return _tag(obstore.put(store, path, data, mode=mode, use_multipart=False))
            except (refused.AlreadyExistsError, refused.PreconditionError):
                return None
            except FileNotFoundError:  # the object to replace, or the bucket
                if isinstance(mode, str):
                    raise
                return None

    @contextmanager
    def _lend_store(self) -> Iterator[tuple[Any, Any]]:
        """Lend the driver and its store; their errors are explained."""
        obstore = _driver()
        if _processes and os.getpid() not in _processes:
            problem = "obstore has threads that this forked process lacks"
            advice = "Start the process anew: subprocess, or multiprocessing's spawn."
            raise StateUnavailableError(self.where, problem, advice)
        _processes.add(os.getpid())
        try:
            yield obstore, self._store
        except (obstore.exceptions.BaseError, OSError, ValueError) as error:
            if isinstance(error, StateURLError):
                raise
            raise explain(str(error), self.where, self._hidden) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # Rust's, which is not an Exception
                raise
            raise self._wrong_settings(error) from None

    @property
    def _hidden(self) -> list[str]:
        return [str(self._settings[name]) for name in self._settings if is_secret(name)]

    def _wrong_settings(self, error: BaseException) -> StateURLError:
        """Return the error of wrong settings, which no later try would repair."""
        what = f"{self.where}: {quote_driver(str(error), self._hidden)}"
        return StateURLError(what, "", (), OPTIONS)

    @cached_property
    def _store(self) -> Any:
        scheme, bucket, path = self._place
        config = dict(self._settings)
        if scheme == "gs" and "endpoint" in config:
            config["base_url"] = config.pop("endpoint")
        waits = dict.fromkeys(("timeout", "connect_timeout"), self._timeout)
        options = {**waits, "allow_http": True}  # as the endpoint says
        # A run tries again itself, and must know of each failed request.
        once = {"max_retries": 0}
        obstore = _driver()
        made = getattr(obstore.store, _CLASSES[scheme])
        try:
            return made(
                bucket, prefix=path, config=config, client_options=options, retry_config=once
            )
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise self._wrong_settings(error) from None


def _path(name: str) -> str:
    """Return the name of a group's object; no store takes a name of dots."""
    quoted = quote(name, safe=" ")
    return "logs/" + (quoted.replace(".", "%2E") if quoted in (".", "..") else quoted)


def _tag(found: Any) -> dict[str, str]:
    """Return what a condition compares: S3 and Azure have a tag, Google a number."""
    return {kind: found[kind] for kind in ("e_tag", "version") if found[kind] is not None}


def _driver() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        what = "a checkpoint in an object store"
        raise MissingDriverError(what, "objectstore", str(error)) from None
    return obstore


def explain(said: str, where: str, hidden: Sequence[str] = ()) -> StateUnavailableError:
    """Return what an error of the driver's means; none of `hidden` is shown."""
    parts = (
        r"status code: (\d+ [A-Za-z ]+)",
        r"<Code>(\w+)</Code>",
        r'(?:message|error): "([\w ,.:-]+)"',
    )
    details = [found[1] for part in parts if (found := re.search(part, said))]
    for pattern, problem, advice in _MEANINGS:
        if re.search(pattern, said):
            answer = f" ({', '.join(details)})" if details else ""
            return StateUnavailableError(where, problem + answer, advice)
    return StateUnavailableError(where, quote_driver(said, hidden), OPTIONS)


def quote_driver(said: str, hidden: Sequence[str] = ()) -> str:
    """Return the driver's own words, if nothing else explains them; none of `hidden` is shown."""
    line = re.sub(r"(decode [\w ]+):.*", r"\1", said.partition("\n")[0])  # it quotes the file
    for each in hidden:
        line = line.replace(each, HIDDEN)
    return f"obstore says: {masked(line)}".rstrip(". ")
