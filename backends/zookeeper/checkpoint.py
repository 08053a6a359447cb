"""A checkpoint in ZooKeeper: a node for each log, and one of the session that holds it."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from time import monotonic
from urllib.parse import quote, unquote

from trident.backends.zookeeper.session import Session, join_addresses
from trident.states.checkpoint_store import CheckpointStore, this_process

_logger = logging.getLogger("trident")

_held: weakref.WeakSet[ZooKeeperCheckpoint] = weakref.WeakSet()
"""The checkpoints that runs of this process hold."""

_LONGEST = 2_147_483
"""Seconds; servers count a session's milliseconds in 32 bits, and a longer one never begins."""

_LOGS = "logs"
_LOCK = "lock"


class ZooKeeperCheckpoint(CheckpointStore):
    """The logs of one checkpoint, as the data of nodes; connects when it is first used.

    Parameters
    ----------
    hosts : sequence of (str, int)
        Servers of one ensemble.
    path : str
        The node of the checkpoint; made if it is missing.
    user, password : str or None
        By ZooKeeper's digest: new nodes belong to that user alone.
    timeout : float
        Seconds to wait for each answer.
    session_timeout : float
        Seconds without a sign of life after which the servers take this process for dead, and let
        another run have the checkpoint. They may bound it, by default to 4 to 40 seconds. A
        connection may take half as long again.

    Notes
    -----
    Below `path` are ``logs/<group>``, whose data are the newest entry of that log, and ``lock``, an
    ephemeral node that names the process which holds the checkpoint. An entry is replaced by a
    conditional `set`, which compares the node's version. So a driver whose session has expired is
    refused after the first append of another driver; the lock only refuses it earlier.

    Examples
    --------
    >>> checkpoint = ZooKeeperCheckpoint([("one", 2181)], "/trident/words")
    >>> checkpoint.place_of("a/b")
    'zookeeper://one:2181/trident/words/logs/a%2Fb'
    """

    largest = 1_000_000
    """Servers drop the connection of a larger request, by jute.maxbuffer."""

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        path: str,
        *,
        user: str | None = None,
        password: str | None = None,
        timeout: float = 5.0,
        session_timeout: float = 10.0,
    ) -> None:
        if timeout <= 0 or session_timeout <= 0:
            raise ValueError("timeout and session_timeout are above 0 seconds")
        if max(timeout, session_timeout) > _LONGEST:
            raise ValueError(f"timeout and session_timeout are {_LONGEST:,} seconds at most")
        self.where = f"zookeeper://{join_addresses(sorted(hosts))}{quote(path)}"
        self._path = path
        login = None if user is None else f"{user}:{password}"
        self._arguments = tuple(hosts), self.where, timeout, session_timeout, login
        self._open: Session | None = None
        self._holds: int | None = None
        self._session_timeout = session_timeout
        self._known: dict[str, tuple[bytes, int]] = {}

    def hold(self) -> str | None:
        """Take the checkpoint, or return its holder.

        A holder in another process may be dead: this waits until its session would have ended.
        """
        deadline = monotonic() + 1.5 * self._session_timeout
        released = threading.Event()
        while (found := self._lock(released.set)) is not None:
            holder, session = found
            if session in [each._holds for each in list(_held)]:
                return holder
            _logger.info("%s is held by %s: waiting for its end", self.where, holder)
            if not released.wait(deadline - monotonic()):
                return holder
            released.clear()
        _held.add(self)
        return None

    def release(self) -> None:
        session, self._open = self._open, None
        self._holds = None
        _held.discard(self)
        if session is not None:
            session.close()

    def names(self) -> list[str]:
        self._session.sync(self._path)
        return sorted(map(unquote, self._session.children(f"{self._path}/{_LOGS}")))

    def read(self, name: str) -> bytes | None:
        self._session.sync(self._path)
        found = self._session.get(self._node(name))
        if found is None:
            self._known.pop(name, None)
            return None
        data, stat = found
        self._known[name] = data, stat.version
        return data

    def replace(self, name: str, new: bytes, expected: bytes | None) -> bool:
        session = self._session
        if self._holds not in (None, session.id):
            self._lock()  # the last session took its lock with it
        known = self._known.get(name)
        if known is None or known[0] != expected:
            if self.read(name) not in (expected, new):
                return False
            known = self._known.get(name)
        if known is None:
            return session.create(self._node(name), new) or self.read(name) == new
        version = session.set(self._node(name), new, known[1])
        if version is None:
            return self.read(name) == new
        self._known[name] = new, version
        return True

    def place_of(self, name: str) -> str:
        return f"{self.where}/{_LOGS}/{_quoted(name)}"

    @property
    def _session(self) -> Session:
        if self._open is None:
            self._open = Session(*self._arguments)
        return self._open

    def _lock(self, on_end: Callable[[], object] | None = None) -> tuple[str, int] | None:
        """Make the lock; if another session has it, return its process and its id."""
        session = self._session
        while not session.create(f"{self._path}/{_LOCK}", this_process().encode(), ephemeral=True):
            found = session.get(f"{self._path}/{_LOCK}", on_end)
            if found is not None and found[1].ephemeralOwner == session.id:
                break  # made by a call whose answer was lost
            if found is not None:
                return found[0].decode(errors="replace"), found[1].ephemeralOwner
        self._holds = session.id
        return None

    def _node(self, name: str) -> str:
        return f"{self._path}/{_LOGS}/{_quoted(name)}"


def _quoted(name: str) -> str:
    """Return the name of a group's node."""
    quoted = quote(name, safe=" ")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted
