"""What processes of the model share: the log, the stores, and what is kept in them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from tests.protocol.model.rules import Rules, Setup

Token = tuple[int, int]
Update = tuple[int, int, int]
Value = tuple[Update, ...] | None
"""The updates that made a value, in order: (txid, emission, place in the batch)."""
Named = tuple[int, int]
"""What a run of a task has staged in a table's database: its id, and how many rows."""

T = TypeVar("T")
StepsOf = Generator[Callable[[], bool] | None, None, T]
Steps = StepsOf[None]
"""A process: it stops before every access to what is shared, or until a condition holds."""


class Unavailable(Exception):
    """A request or its answer was lost."""


class Stale(Exception):
    """Another attempt has taken over."""


class Stopped(Exception):
    """A driver gives up: another has taken over the log."""


class Halted(Exception):
    """A driver gives up: a state is not what the log knows."""


class Record(NamedTuple):
    """A control record; `ready` once its attempt has confirmed its writes.

    `plan` is what its attempt goes by, where that is planned and not committed yet.  `named` is
    what a table's merge takes of the staged rows.  `reached` is the time of the last committed
    batch.
    """

    log_id: int
    token: Token
    committed: int
    retried: tuple[tuple[int, int], ...]
    ready: bool = False
    plan: int | None = None
    named: tuple[Named, ...] = ()
    reached: int = 0

    def counts(self, txid: int, attempt: int) -> bool:
        return attempt == dict(self.retried).get(txid, 0)


class Cell(NamedTuple):
    """A stored value; a transactional one keeps no `prev`."""

    txid: int
    attempt: int
    curr: Value
    prev: Value


Stored = tuple[Cell | None, int]
"""A cell, or None where there is none, and the version of its entry."""

StoredCell = tuple[Cell, int]


class Entry(NamedTuple):
    """The log's whole state after one append."""

    number: int
    writer: str
    begun: Token
    committed: int
    retried: tuple[tuple[int, int], ...]
    listed: tuple[Token | None, Token | None]
    planned: int | None
    history: tuple[tuple[int, int | None], ...]
    """The emission that each committed batch processed, None where it was given up."""
    digest: int | None = None
    """Where the last committed batch ends, by the source's log; None without one."""


class Staged(NamedTuple):
    """What a staged file holds: a batch's emission, where it ends, and where the one before did."""

    emission: int
    digest: int
    before: int | None


class Log:
    """Files of entries by number; a file's entries are in the order in which they were appended."""

    def __init__(self, log_id: int) -> None:
        self.log_id = log_id
        self.files: dict[int, list[Entry]] = {}

    def copy(self) -> Log:
        copied = Log(self.log_id)
        copied.files = {number: list(entries) for number, entries in self.files.items()}
        return copied

    def newest(self) -> Entry | None:
        """The last entry of the highest file that has any."""
        for number in sorted(self.files, reverse=True):
            if self.files[number]:
                return self.files[number][-1]
        return None

    def cut(self, lost: int) -> None:
        """Lose up to `lost` of the newest entries, but never all."""
        for number in sorted(self.files, reverse=True):
            while lost and self.files[number] and sum(map(len, self.files.values())) > 1:
                self.files[number].pop()
                lost -= 1

    def purge(self, number: int) -> None:
        """Remove the files before `number`."""
        for older in [each for each in self.files if each < number]:
            del self.files[older]


class Server:
    """What keeps stores; those of one server lose their newest writes together."""

    def __init__(self) -> None:
        self.incarnation = 0
        self.undo: list[Callable[[], None]] = []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written within is lost together."""
        before, self.undo = self.undo, []
        yield
        written, self.undo = self.undo, before

        def undo() -> None:
            for each in reversed(written):
                each()

        if written:
            self.undo.append(undo)

    def rewind(self, lost: int) -> bool:
        """Another one takes over, without the newest writes; say whether any is missing."""
        lost = min(lost, len(self.undo))
        for _ in range(lost):
            self.undo.pop()()
        self.incarnation += 1
        return lost > 0


class Store:
    """One state's store, with the atomic steps that its ability offers."""

    def __init__(self, setup: Setup, rules: Rules, server: Server) -> None:
        self.setup = setup
        self.rules = rules
        self.server = server
        self.control: Record | None = None
        self.cells: dict[str, StoredCell] = {}
        self._versions = 0

    def get(self, key: str) -> Stored:
        return self.cells.get(key, (None, 0))

    def put_control(self, new: Record, expected: Record | None, compared: bool) -> bool:
        if compared and self.control != expected:
            return False
        before = self.control

        def undo() -> None:
            self.control = before

        self.server.undo.append(undo)
        self.control = new
        return True

    def after_begin(self) -> Steps:
        """What is done after an attempt has put its record: nothing."""
        yield from ()

    def merge(self, record: Record) -> None:
        """When a batch is announced: its values are where they belong already."""

    def is_whole(self, record: Record) -> bool:
        """Whether what the tasks have written is there, as far as the store can tell."""
        return True

    def confirms(self, ready: Record, incarnation: int) -> bool:
        """Whether nothing was lost since the attempt has begun, which is ready now."""
        return self.server.incarnation == incarnation

    def admits(self, writer: Record) -> bool:
        """Whether the fence lets this writer through."""
        rules, stored = self.rules, self.control
        if self.setup.ability != "fenced" or not rules.fence:
            return True
        if not rules.equality:
            return stored is None or stored.token <= writer.token
        if stored is not None and not rules.fence_log_id:
            return stored._replace(log_id=writer.log_id) == writer
        return stored == writer

    def write(self, key: str, cell: Cell, writer: Record, version: int) -> bool:
        ability, rules = self.setup.ability, self.rules
        stored, stored_version = self.get(key)
        if not self.admits(writer):
            return False
        if ability == "entry" and rules.entry and version != stored_version:
            return False
        if ability == "versioned" and rules.highest and stored and stored[:2] > cell[:2]:
            return True
        self._versions += 1
        self._set(key, (cell, self._versions))
        return True

    def drop(self, key: str) -> None:
        if key in self.cells:
            self._set(key, None)

    def failover(self, lost: int) -> None:
        """Another server takes over, and what it has taken over is never lost any more."""
        self.server.rewind(lost)
        self.server.undo.clear()

    def empty(self) -> None:
        self.failover(0)
        self.control, self.cells = None, {}

    def backup(self) -> Callable[[], None]:
        """Copy what is stored; returns what brings it back, on another server."""
        control, cells = self.control, dict(self.cells)

        def restore() -> None:
            self.failover(0)
            self.control, self.cells = control, dict(cells)

        return restore

    def settle(self) -> None:
        """What is stored now survives a change of server, unless the store forgets anything."""
        if self.setup.harm != "rewind":
            self.server.undo.clear()

    def _set(self, key: str, stored: StoredCell | None) -> None:
        before = self.cells.get(key)

        def put(value: StoredCell | None) -> None:
            if value is None:
                self.cells.pop(key, None)
            else:
                self.cells[key] = value

        self.server.undo.append(lambda: put(before))
        put(stored)
