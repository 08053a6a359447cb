"""A checkpoint in Redis: one hash, whose fields are the newest entries of its logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trident.backends.redis.connections import Address, Command, Wire, connected
from trident.backends.redis.control import check_replicas
from trident.backends.redis.store import RedisStore
from trident.backends.redis.urls import CONNECTION, check_tls, place_of
from trident.backends.state_url import StateURL
from trident.states.checkpoint_store import CheckpointStore
from trident.states.errors import CorruptStateError, StateUnavailableError, StateURLError

# A value that is already there is written again: WAIT only counts what its connection has written.
_REPLACE = """
local found = redis.call('HGET', KEYS[1], ARGV[1])
if found ~= ARGV[2] and found ~= (ARGV[3] or false) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""


class RedisCheckpoint(CheckpointStore):
    """The logs of one checkpoint, on a server, a service's master or a cluster's node.

    It has no lock; docs/protocol.md, "The log decides", says why.
    """

    def __init__(self, store: RedisStore) -> None:
        self.where = _url_of(store)
        self._name = f"trident.checkpoint:{{{store.prefix}}}"
        self._key = self._name.encode()
        self._tag = f"{store.prefix}".encode()
        self._waiting = store.waiting
        self._options = store.connection_options
        self._masters = store.masters
        self._address: Address | None = None

    def names(self) -> list[str]:
        return sorted(name.decode() for name in self._ask(("HKEYS", self._key)))

    def read(self, name: str) -> bytes | None:
        found: bytes | None = self._ask(("HGET", self._key, name.encode()))
        return found

    def replace(self, name: str, new: bytes, expected: bytes | None) -> bool:
        known = () if expected is None else (expected,)
        replacing = ("EVAL", _REPLACE, 1, self._key, name.encode(), new, *known)
        waits = [self._waiting.command] if self._waiting.replicas else []
        with self._connected() as wire:
            replaced, *acknowledged = wire.ask(replacing, *waits)
            for replicas in acknowledged if replaced else ():
                check_replicas(wire, replicas, self._waiting)
            return bool(replaced)

    def release(self) -> None:
        """Do nothing: connections are the process's, and are kept for states too."""

    def place_of(self, name: str) -> str:
        return f"the field {name!r} of the hash {self._name!r} in {self.where}"

    def _ask(self, command: Command) -> Any:
        with self._connected() as wire:
            [answer] = wire.ask(command)
            return answer

    @contextmanager
    def _connected(self) -> Iterator[Wire]:
        """Lend a connection to the server; after an error its address is looked up anew."""
        try:
            # Another group's thread may forget the address meanwhile.
            address = self._address
            if address is None:
                [address] = self._masters.find([self._tag])
                self._address = address
            with connected(address, self._options) as wire:
                yield wire
        except StateUnavailableError as error:
            self._address = None
            raise self._masters.explain(error) from error.__cause__
        except CorruptStateError:
            raise CorruptStateError(
                f"the key {self._name!r} in {self.where}",
                "it is not a hash",
                "Something else wrote it, and it is left unchanged: give another prefix=.",
            ) from None


def from_url(url: StateURL) -> RedisCheckpoint:
    """Return the checkpoint that a URL describes; connects to nothing.

    The URL is one of a state's, with a ``prefix=`` that names the checkpoint, and of the options
    those that say how to connect and for how many replicas to wait.
    """
    place, further = place_of(url)
    of_place = {name: kind for name, kind in further.items() if name != "partitions"}
    options = url.read_own(prefix=str, **CONNECTION, **of_place)
    check_tls(url, options)
    if "prefix" not in options:
        what = f"{url.scheme}: the URL of a checkpoint names it, and this one has no prefix="
        raise StateURLError(what, "", (), "Add ?prefix=name, another for each topology.")
    return RedisCheckpoint(RedisStore(**{**place, **options}))


def _url_of(store: RedisStore) -> str:
    _, place, prefix = store.identity
    if store.cluster:
        hosts = ",".join(f"{host}:{port}" for host, port in sorted(store.cluster))
        return f"redis+cluster://{hosts}?prefix={prefix}"
    if store.sentinels:
        hosts = ",".join(f"{host}:{port}" for host, port in sorted(store.sentinels))
        return f"redis+sentinel://{hosts}/{store.service}/{store.db}?prefix={prefix}"
    return f"redis://{place}?prefix={prefix}"
