"""Connections to one SQLite file: in each process a writer, and a pool of readers."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from trident.backends.pool import Pool, closed_after_error
from trident.states.errors import CorruptStateError, StateUnavailableError

_PRAGMAS = (
    # No commit waits for the disk; sync() does. See SQLiteStore's notes.
    "synchronous = NORMAL",
    "temp_store = MEMORY",
    "cache_size = -65536",
)
_PAGE = 4096
_SHORTEST_LOG = 32 * 2**20
"""The shortest log, in bytes, that is copied into the file: most batches don't wait for that."""


class _Reader(NamedTuple):
    """A read-only connection to the file of this identity; None where it has no state yet."""

    file: str
    connection: sqlite3.Connection | None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


class FileConnections:
    """The connections to one file.

    `prepare` is called with each connection that writes. A reader connects to a file that is
    `usable`.
    """

    def __init__(
        self,
        path: str,
        patience: float,
        prepare: Callable[[sqlite3.Connection], None],
        usable: Callable[[sqlite3.Connection], bool],
    ) -> None:
        self._path = path
        self._patience = patience
        self._prepare = prepare
        self._usable = usable
        self._readers = Pool(self._open_reader, self._is_current)
        self._begin()
        _live.add(self)

    def _begin(self) -> None:
        """Begin without a connection, as a new process does."""
        self._writing = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._opened = ""
        self._log_size = 0
        self._replaced = 0
        self._pinned = threading.local()

    def leave_to_parent(self) -> None:
        """Begin anew in a forked child, which must not use, nor close, its parent's connections."""
        _inherited.append((self, self._writer, self._pinned))
        self._begin()

    @contextmanager
    def writer(self) -> Iterator[sqlite3.Connection]:
        """Lend the one connection that writes; it is lent and returned outside a transaction."""
        with self._writing, _explained(self._path):
            if self._writer is None:
                self._writer = self._open_writer()
            if self._writer.in_transaction:  # an interrupt came right after its BEGIN
                self._writer.execute("ROLLBACK")
            yield self._writer

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection | None]:
        """Lend a read-only connection, the pinned one if there is one; None: no state yet."""
        pinned: sqlite3.Connection | None = getattr(self._pinned, "connection", None)
        if pinned is not None:
            with _explained(self._path):
                yield pinned
            return
        with _explained(self._path), self._readers.lend(self._path) as reader:
            yield reader.connection

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Let this thread read everything as of one moment."""
        if getattr(self._pinned, "connection", None) is not None:
            yield
            return
        with self.reader() as connection:
            if connection is None:
                yield
                return
            connection.execute("BEGIN")
            self._pinned.connection = connection
            try:
                yield
            finally:
                self._pinned.connection = None
                connection.execute("COMMIT")

    @contextmanager
    def glance(self) -> Iterator[sqlite3.Connection | None]:
        """Lend a read-only connection to a file, with a state or not; None if it is missing."""
        if not os.path.exists(self._path):
            yield None
            return
        with _explained(self._path), closing(self._connect_to_read()) as connection:
            yield connection

    def sync(self) -> None:
        """Force every commit so far to the disk, as SQLite's own sync of its log would."""
        try:
            _sync(f"{os.path.realpath(self._path)}-wal", os.fdatasync)
        except OSError as error:
            problem = f"its write-ahead log: {error.strerror}"
            raise StateUnavailableError(self._path, problem, "Check its disk.") from error

    def identity(self) -> str:
        """Return which file is open, after opening a file that has replaced it."""
        with self.writer() as connection:
            current = self._opened == file_identity(self._path)
            if current:
                self._fit_log(connection)
        if not current:
            self.close()
            # The new file may have the inode number of the old one.
            self._replaced += 1
            with self.writer():
                pass
        return f"{self._opened} {self._replaced}"

    def close(self) -> None:
        """Close idle connections, and copy the log into the file if no reader needs it."""
        self._readers.close_idle()
        with self._writing:
            if self._writer is not None:
                # SQLite does so only when the last connection closes, and a reader can't. If it
                # is not possible now, the data is as safe in the log.
                with suppress(sqlite3.Error):
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._writer.close()
                self._writer = None

    def _is_current(self, reader: _Reader) -> bool:
        return reader.connection is not None and reader.file == file_identity(self._path)

    def _open_writer(self) -> sqlite3.Connection:
        with closed_after_error(self._connect(self._path)) as connection:
            [mode] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise StateUnavailableError(
                    self._path,
                    f"its file system can't keep a write-ahead log (journal mode {mode})",
                    "Put the file on a local disk.",
                )
            [encoding] = connection.execute("PRAGMA encoding").fetchone()
            if encoding != "UTF-8":
                # Keys are sent as text and compared as bytes: no key would be found again.
                raise CorruptStateError(
                    self._path, f"its texts are in {encoding}", "Give a file of UTF-8, or none yet."
                )
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            self._log_size = 0
            self._fit_log(connection)
            self._prepare(connection)
            # So the names of the file and its log survive a loss of power.
            _sync(os.path.dirname(os.path.realpath(self._path)), os.fsync)
        self._opened = file_identity(self._path)
        return connection

    def _fit_log(self, connection: sqlite3.Connection) -> None:
        """Let the log become as large as the file before it is copied there.

        A batch of random keys writes to pages all over a large table. Most of them are written
        again before such a log is full, and then copied once.
        """
        size = max(_SHORTEST_LOG, os.path.getsize(self._path))
        if size != self._log_size:
            connection.execute(f"PRAGMA wal_autocheckpoint = {size // _PAGE}")
            connection.execute(f"PRAGMA journal_size_limit = {2 * size}")
            self._log_size = size

    def _open_reader(self, path: str) -> _Reader:
        file = file_identity(path)
        if not os.path.exists(path):
            return _Reader(file, None)
        with closed_after_error(self._connect_to_read()) as connection:
            if self._usable(connection):
                return _Reader(file, connection)
        connection.close()
        return _Reader(file, None)

    def _connect_to_read(self) -> sqlite3.Connection:
        return self._connect(f"{Path(self._path).as_uri()}?mode=ro", uri=True)

    def _connect(self, path: str, *, uri: bool = False) -> sqlite3.Connection:
        return sqlite3.connect(
            path,
            uri=uri,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
        )


_live: weakref.WeakSet[FileConnections] = weakref.WeakSet()
_inherited: list[object] = []


def _leave_to_parent() -> None:
    for connections in list(_live):
        connections.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


def file_identity(path: str) -> str:
    """Return what tells a file from one that has replaced it."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return "none"
    return f"{found.st_dev}:{found.st_ino}"


def _sync(path: str, sync: Callable[[int], None]) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Make what is written inside one atomic step; an error undoes it."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_BUSY = "Another process is writing to it; stop that one, or wait for it."
_DENIED = "This user must be able to write the file and its folder."
_UNAVAILABLE = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _BUSY),
    sqlite3.SQLITE_FULL: "Make room on its disk.",
    sqlite3.SQLITE_IOERR: "Check its disk.",
    sqlite3.SQLITE_CANTOPEN: "Its folder must exist, and this user must be able to write there.",
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH), _DENIED),
}
_UNREADABLE = {
    sqlite3.SQLITE_NOTADB: "Give the path of a SQLite file, or of one that does not exist yet.",
    sqlite3.SQLITE_CORRUPT: "Restore it from a backup, or begin anew with an empty store and a "
    "new checkpoint.",
    sqlite3.SQLITE_ERROR: "Something else has changed its tables; restore it from a backup, or "
    "begin anew with an empty store and a new checkpoint.",
}


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF
        if code in _UNAVAILABLE:
            raise StateUnavailableError(path, str(error), _UNAVAILABLE[code]) from None
        if code in _UNREADABLE:
            raise CorruptStateError(path, str(error), _UNREADABLE[code]) from None
        raise
