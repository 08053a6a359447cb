"""The world of the model: what is shared, who runs, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple
from zlib import crc32

from tests.protocol.model.driver import Driver
from tests.protocol.model.reader import Answer, Reader
from tests.protocol.model.rows import Table, TableTask
from tests.protocol.model.rules import Rules, Setup
from tests.protocol.model.shared import (
    Cell,
    Entry,
    Log,
    Named,
    Record,
    Server,
    Staged,
    Stale,
    Steps,
    StepsOf,
    Store,
    Stored,
    Unavailable,
    Value,
)
from tests.protocol.model.staging import StagingDriver
from tests.protocol.model.task import Operation, Task

_PATIENCE = 3000
_LIFE = 3
"""How long a value lives that expires."""


class Wrong(Exception):
    """The model has gone wrong: what was read or committed is not what the batches make."""


@dataclass(eq=False)
class Process:
    """A generator that is somewhere on its way."""

    name: str
    kind: Literal["driver", "task", "reader"]
    steps: StepsOf[Named | None]
    owner: str
    waits: object = None

    @property
    def ready(self) -> bool:
        return not callable(self.waits) or bool(self.waits())


class _Checkpoint(NamedTuple):
    """What a copy of a checkpoint holds, and what was made known of it."""

    log: Log
    source_done: int
    staged: dict[tuple[int, int], Staged]
    ends: dict[int, int]
    promised: int
    acknowledged: tuple[tuple[int, int | None], ...]


class World:
    """Everything there is; an action is one word, such as ``D0`` or ``kill:T3``.

    ==================  ==========================================================
    ``start``           a new driver process starts; those before may live on
    ``read``            a reader starts
    ``D0 C1 T3 R1``     that process takes its next step; C1 is a driver's second one
    ``kill:T3``         that process dies before its next step; a driver's two die together
    ``fail:T3``         the answer to its last request, or its next request, is lost
    ``again:T3``        a duplicate of that task starts
    ``failover:0:2``    store 0 loses its newest 2 writes and its server changes
    ``rewind:0:9``      store 0 loses its newest 9 writes, whatever was confirmed
    ``backup`` ``restore``  a copy of the stores is made, comes back
    ``lose:0``          store 0 is emptied
    ``wipe``            stores and log are deleted; tasks live on
    ``forget``          the log is deleted
    ``anew`` ``turn``   another log begins, while those of the first live on; the other log's turn
    ``cut:2``           the log loses its newest 2 entries, and its driver dies
    ``copy`` ``turn``   a copy of the log is made; its drivers' turn, or the original's again
    ==================  ==========================================================
    """

    keys = ("a", "b", "c")
    partitions = (("a",), ("b", "c"))

    def __init__(self, setup: Setup, rules: Rules, seed: int) -> None:
        self.setup = setup
        self.rules = rules
        self.seed = seed
        self.gives_up = setup.kind == "opaque" and seed % 2 == 0
        self.goal = 5
        self.halted = ""
        self.harmed = False
        self.twins = False
        self.replaced = False
        self.processes: dict[str, Process] = {}
        self.tasks: dict[int, dict[int, str]] = {}
        self._named: dict[int, dict[int, Named]] = {}
        self._work: dict[str, tuple[int, int, Task | TableTask]] = {}
        self._readers: dict[str, Reader] = {}
        self._started = 0
        self._new_ends = 0
        self.emitted: dict[int, int] = {}
        self._goes_on_from: dict[tuple[int, int], int | None] = {}
        self._ends: dict[tuple[int, int], int] = {}
        self._written: dict[tuple[Log, int], int] = {}
        self._backup: list[Callable[[], None]] = []
        self._log_ids = 0
        self._other: _Checkpoint | None = None
        self._owners: set[int] = set()
        self.stores = self._make_stores()
        self.maps = {
            s: store for s, store in enumerate(self.stores) if not isinstance(store, Table)
        }
        self._new_log()

    def _make_stores(self) -> tuple[Store, Store]:
        setup, rules, server = self.setup, self.rules, Server()
        if setup.ability != "rows":
            return Store(setup, rules, server), Store(setup, rules, Server())
        table = Table(setup, rules, server)
        if setup.beside == "map":
            return table, Store(replace(setup, ability="fenced"), rules, Server())
        return table, Table(setup, rules, server if setup.beside == "database" else Server())

    def by_server(self, states: Sequence[int]) -> list[list[int]]:
        """These states, those of one server together."""
        found: dict[int, list[int]] = {}
        for state in states:
            found.setdefault(id(self.stores[state].server), []).append(state)
        return list(found.values())

    def value(self, state: int, key: str) -> Value:
        """What a table holds."""
        cell, _ = self.stores[state].get(key)
        return cell.curr if cell else None

    def _new_log(self) -> None:
        self._log_ids += 1
        self.log = Log(self._log_ids)
        self.source_done = 0
        self.staged: dict[tuple[int, int], Staged] = {}
        self.ends: dict[int, int] = {}
        self.promised = 0
        self.workers: tuple[dict[int, dict[str, Stored]], ...] = ({0: {}, 1: {}}, {0: {}, 1: {}})
        self.acknowledged: tuple[tuple[int, int | None], ...] = ()

    # What the source emits.

    def emit(self, txid: int, before: int | None, end: int | None = None) -> int:
        """The number of the next emission of a batch; each has other content.

        It goes on from where the batch before has ended, `before`; None where that one was given
        up, and there is no such batch. It ends at `end`, by default where no other does.
        """
        self.emitted[txid] = emission = self.emitted.get(txid, -1) + 1
        self._goes_on_from[txid, emission] = before
        self._ends[txid, emission] = emission if end is None else end
        return emission

    def end_batch(self, txid: int) -> int:
        """The source's log says from now on that a batch ends where none has ended before."""
        self.replaced = self.replaced or txid in self.ends
        self._new_ends += 1
        self.ends[txid] = self._new_ends
        return self._new_ends

    def touched(self, txid: int, emission: int) -> tuple[int, ...]:
        """The states that a batch writes; none when its source calls it empty."""
        return tuple(s for s in (0, 1) if self.operations(txid, emission, s))

    def operations(self, txid: int, emission: int, state: int) -> list[Operation]:
        dice = crc32(f"{self.seed}/{txid}/{emission}/{state}".encode())
        empty = crc32(f"{self.seed}/{txid}/{emission}".encode()) % 8 == 0
        found = []
        for place in range(0 if empty else 3):
            dice, choice = divmod(dice, 16)
            if choice < 9:
                update = (txid, emission, place)
                found.append(Operation(self.keys[choice % 3], update, choice > 6))
        return found

    def time(self, txid: int, emission: int) -> int:
        """The time of a batch, which may be before that of the batch before it."""
        dice = crc32(f"{self.seed}/{txid}/{emission}/time".encode())
        return txid + dice % 4 if self.touched(txid, emission) else 0

    def reached(self, history: tuple[tuple[int, int | None], ...]) -> int:
        """The latest time of some batches."""
        return max([0, *(self.time(t, each) for t, each in history if each is not None)])

    def alive(self, value: Value, moment: int) -> Value:
        """A value, or None if it has expired."""
        if value is None or not self.setup.expires:
            return value
        last = max(self.time(txid, emission) for txid, emission, _ in value)
        return value if last + _LIFE > moment else None

    # What must come out.

    def truth(self, history: tuple[tuple[int, int | None], ...]) -> Answer:
        state: Answer = {(s, key): None for s in (0, 1) for key in self.keys}
        reached = 0
        for txid, emission in history:
            if emission is not None:
                reached = max(reached, self.time(txid, emission))
                state = {place: self.alive(value, reached) for place, value in state.items()}
                for s in (0, 1):
                    for operation in self.operations(txid, emission, s):
                        state[s, operation.key] = operation.apply(state[s, operation.key])
        return {place: self.alive(value, reached) for place, value in state.items()}

    def committed(self, log: Log, entry: Entry) -> None:
        """An entry counts for its writer, who goes on from it."""
        if entry.listed != (None, None):
            self._owners.add(log.log_id)
            if len(self._owners) > 1 and self.setup.harm == "anew":
                raise Wrong(f"{entry.writer} committed a batch to states of another log")
        if log is not self.log:
            return
        known, history = self.acknowledged, entry.history
        if [txid for txid, _ in history] != list(range(1, len(history) + 1)):
            raise Wrong(f"{entry.writer} committed a batch out of order: {history}")
        if history[: len(known)] != known and known[: len(history)] != history:
            raise Wrong(f"{entry.writer} committed {history} beside {known}")
        if len(history) < len(known):
            raise Wrong(f"{entry.writer} forgot {known[len(history) :]}")
        for (txid, emission), (last, ended) in zip(history[1:], history, strict=False):
            if emission is None or (self.setup.staged and ended is None):
                continue  # where a batch ends that was given up, its source alone knows
            before = None if ended is None else self._ends[last, ended]
            if self._goes_on_from[txid, emission] != before:
                raise Wrong(f"{entry.writer} committed {history}, but {txid} goes on from another")
        self.acknowledged = history

    def promise(self, log: Log, committed: int) -> None:
        """From now on, readers see this batch, unless a store has forgotten it meanwhile."""
        if self.setup.harm in ("rewind", "failover"):
            committed = min(committed, self._known())
        if log is self.log:
            self.promised = max(self.promised, committed)

    def check(self, reader: Reader) -> None:
        newest = self.log.newest()
        torn = self.harmed and self.setup.harm != "rewind"
        if newest is None or torn or self.setup.kind == "transactional":
            return
        floors: dict[tuple[tuple[int, str], ...], int] = {}
        for answer in reader.looks:
            read, history = tuple(answer), newest.history
            floor = floors.get(read, reader.floor)
            for cut in range(floor, len(history) + 1):
                if answer.items() <= self.truth(history[:cut]).items():
                    floors[read] = cut
                    break
            else:
                raise Wrong(
                    f"a reader saw {_shown(answer)}, which is no committed batch from "
                    f"{floor} to {len(history)} of {history}"
                )

    def check_final(self) -> None:
        newest = self.log.newest()
        assert newest is not None
        if newest.history[: len(self.acknowledged)] != self.acknowledged:
            raise Wrong(f"the log holds {newest.history} after {self.acknowledged}")
        expected = {} if self.twins else self.truth(newest.history)
        for (state, key), value in expected.items():
            cell = self.stores[state].get(key)[0]
            found = self._final(cell, newest) if state in self.maps else self.value(state, key)
            found = self.alive(found, self.reached(newest.history))
            if found != value:
                raise Wrong(f"state {state} holds {key} = {found} instead of {value}: {cell}")

    def _final(self, cell: Cell | None, newest: Entry) -> Value:
        if cell is None:
            return None
        if self.setup.kind == "transactional" or not self.rules.attempts:
            return cell.curr
        counts = dict(newest.retried).get(cell.txid, 0) == cell.attempt
        return cell.curr if counts and cell.txid <= newest.committed else cell.prev

    # Who runs.

    def spawn(
        self,
        driver: Driver,
        record: Record,
        emission: int,
        read: dict[tuple[int, str], Stored],
    ) -> int:
        """Start the tasks of an attempt; returns the number of their group."""
        txid = record.token[0]
        if self.setup.staged and self._written.setdefault((driver.log, txid), emission) != emission:
            raise Wrong(f"{driver.name} writes other tuples of batch {txid} than an attempt before")
        group = len(self.tasks)
        self.tasks[group] = {}
        for state in (0, 1):
            operations = self.operations(txid, emission, state)
            for index, keys in enumerate(self.partitions):
                if self.rules.one_updater:
                    part = [operation for operation in operations if operation.key in keys]
                else:
                    part = operations[index::2]
                if not part:
                    continue
                turn = (txid + emission + index) % 2
                caches = driver.caches if self.setup.hosted == "driver" else self.workers[turn]
                store = self.stores[state]
                known = {key: cell for (at, key), cell in read.items() if at == state}
                task: Task | TableTask
                if isinstance(store, Table):
                    task = TableTask(store, part, index)
                else:
                    made = (store.setup, self.rules, record, store)
                    moment = max(record.reached, self.time(txid, emission))
                    alive = partial(self.alive, moment=moment)
                    task = Task(*made, caches[state], part, keys, known, alive)
                self.tasks[group][2 * state + index] = "running"
                self._start_task(driver.name, group, 2 * state + index, task)
        return group

    def named(self, group: int) -> dict[int, tuple[Named, ...]]:
        """What the runs have staged whose success the driver has seen, by state."""
        found = self._named.get(group, {})
        return {s: tuple(found[part] for part in found if part // 2 == s) for s in (0, 1)}

    def _start_task(self, owner: str, group: int, part: int, task: Task | TableTask) -> None:
        name = self._name("T")
        self._work[name] = (group, part, task)
        self.processes[name] = Process(name, "task", task.run(), owner)

    def _name(self, letter: str) -> str:
        self._started += 1
        return f"{letter}{self._started}"

    def start(self) -> str:
        name = self._name("D")
        driver = StagingDriver(name, self) if self.setup.staged else Driver(name, self)
        self.processes[name] = Process(name, "driver", driver.run(), name)
        return name

    def beside(self, driver: Driver, steps: Steps) -> None:
        """Start another process of a driver, which dies with it."""
        name = self._name("C")
        self.processes[name] = Process(name, "driver", steps, driver.name)

    def read(self) -> str:
        name = self._name("R")
        self._readers[name] = Reader(self)
        self.processes[name] = Process(name, "reader", self._readers[name].run(), name)
        return name

    def act(self, action: str) -> None:
        """Play one action; one that makes no sense now does nothing."""
        verb, _, rest = action.partition(":")
        if verb == "start":
            self.start()
        elif verb == "read":
            self.read()
        elif verb in self.processes:
            self.step(verb)
        elif verb == "kill":
            self._kill(rest)
        elif verb == "fail":
            self.step(rest, Unavailable())
        elif verb == "again":
            if rest in self._work:
                group, part, task = self._work[rest]
                self._start_task("", group, part, task)
        elif verb == self.setup.harm:
            self._harm(verb, rest)
        elif verb == "backup":
            self._copy()
        elif verb == "turn":
            self._take_turns()

    def step(self, name: str, error: Exception | None = None) -> None:
        process = self.processes.get(name)
        if process is None or (error is None and not process.ready):
            return
        try:
            process.waits = process.steps.throw(error) if error else next(process.steps)
        except StopIteration as end:
            self._end(name, "done", end.value)
        except (Unavailable, Stale):
            self._end(name, "failed")

    def _end(self, name: str, outcome: str, named: Named | None = None) -> None:
        process = self.processes.pop(name)
        if name in self._work:
            group, part, _ = self._work[name]
            if self.tasks[group][part] == "running":
                self.tasks[group][part] = outcome
                if named:
                    self._named.setdefault(group, {})[part] = named
        if process.kind == "reader":
            self.check(self._readers[name])

    def _kill(self, name: str) -> None:
        process = self.processes.get(name)
        if process is None or process.kind == "reader":
            return
        self._end(name, "failed")
        if process.kind == "driver":
            for other in [o for o in self.processes.values() if o.owner == process.owner]:
                if other.kind == "driver" or self.setup.hosted == "driver":
                    self._end(other.name, "failed")

    def _copy(self) -> None:
        records = [store.control for store in self.stores]
        tables = not self.maps  # all of a table's database is as of one moment
        if tables or all(record and record.token[0] <= record.committed for record in records):
            self._backup = [store.backup() for store in self.stores]

    def _harm(self, harm: str, detail: str) -> None:
        if harm == "failover":
            state, lost = map(int, detail.split(":"))
            self.stores[state].failover(lost)
            self._promise_less()
            if len(self.maps) < 2:
                self._end_all("reader")  # who may look at tables of either server
        elif harm == "rewind":
            state, lost = map(int, detail.split(":"))
            if self.stores[state].server.rewind(lost):
                self.harmed = True
                self._promise_less()
                self._end_all("reader")  # whose answers came from the server before
        elif harm == "copy" and self.log.newest():  # the id is in the first entry
            self._other = self._checkpoint()
        elif harm == "restore" and self._backup:
            self.harmed = True
            for restore in self._backup:
                restore()
        elif harm == "lose":
            self.harmed = True
            self.stores[int(detail)].empty()
        elif harm == "wipe":
            for store in self.stores:
                store.empty()
            self._end_drivers()
            self._new_log()
        elif harm == "cut" and self.log.newest():
            self._end_drivers()
            self.log.cut(int(detail))
            self._remember_less()
        elif harm == "anew" and self._other is None:
            self.harmed = True
            self._other = self._checkpoint()
            self._new_log()
        elif harm == "forget":
            self.harmed = True
            self._end_drivers()
            self._new_log()

    def _known(self) -> int:
        """The last batch that every store knows to be committed."""
        records = [store.control for store in self.stores]
        return min(record.committed if record else 0 for record in records)

    def _promise_less(self) -> None:
        self.promised = self._known()
        for reader in self._readers.values():
            reader.floor = min(reader.floor, self.promised)

    def _remember_less(self) -> None:
        """The log has lost entries: what it has committed begins with what it still holds."""
        newest = self.log.newest()
        assert newest is not None
        self.harmed = True
        self.acknowledged = newest.history
        self.source_done = min(self.source_done, newest.committed)
        self.promised = min(self.promised, newest.committed)

    def _checkpoint(self) -> _Checkpoint:
        # Its drivers go on with the log itself where they live on.
        log = self.log if self.setup.harm == "anew" else self.log.copy()
        return _Checkpoint(
            *(log, self.source_done, dict(self.staged), dict(self.ends)),
            *(self.promised, self.acknowledged),
        )

    def _take_turns(self) -> None:
        if self._other is not None:
            self.harmed = True
            if self.setup.harm == "copy":
                self._end_drivers()
            other, self._other = self._other, self._checkpoint()
            self.twins = self.twins or self._say_the_same(self.log, other.log)
            self.log, self.source_done, self.staged, self.ends = other[:4]
            self.promised, self.acknowledged = other[4:]

    def _say_the_same(self, log: Log, other: Log) -> bool:
        """Whether two copies have committed the same attempts, and not the same values.

        They begin a state by one attempt once. So a batch of theirs was empty in one copy and not
        in the other, and no control record tells whose it is: see *Lost writes* in protocol.md.
        """
        one, two = log.newest(), other.newest()
        if one is None or two is None or self.setup.harm != "copy":
            return False
        same = (one.committed, one.retried) == (two.committed, two.retried)
        return same and self.truth(one.history) != self.truth(two.history)

    def _end_drivers(self) -> None:
        self._end_all("driver", "reader")

    def _end_all(self, *kinds: str) -> None:
        for process in list(self.processes.values()):
            if process.kind in kinds:
                del self.processes[process.name]

    # How it ends.

    def end(self) -> None:
        """A driver works alone, whoever lives on comes late, another driver works alone.

        Whoever starts again after a driver has stopped must stop too, or be right.
        """
        self._alone()
        for process in list(self.processes.values()):
            for _ in range(_PATIENCE):
                self.step(process.name)
                if process.name not in self.processes or not process.ready:
                    break
        self.processes.clear()
        self._alone()
        if not self.halted:
            name = self.read()
            reader = self._readers[name]
            for _ in range(_PATIENCE):
                self.step(name)
            if not reader.looks and not self.harmed:
                raise Wrong("a reader never gets an answer, though nothing happens")
            self.check_final()

    def _alone(self) -> None:
        self.halted = ""
        self.goal = max(self.goal, self.source_done) + 2
        name = self.start()
        before = set(self.processes) - {name}
        for _ in range(_PATIENCE):
            mine = [p for p in self.processes.values() if p.name not in before and p.ready]
            if not mine:
                break
            for process in mine:
                self.step(process.name)
        if self.halted:
            if not self.harmed and not self.replaced:
                raise Wrong(f"a driver stopped although nothing was harmed: {self.halted}")
        elif self.source_done < self.goal:
            raise Wrong("a driver that works alone never ends its batches")
        else:
            newest = self.log.newest()
            if newest is None or newest.committed < self.source_done:
                raise Wrong("a batch that its source has passed over is never committed")


def _shown(answer: Answer) -> str:
    return " ".join(f"{state}{key}={value}" for (state, key), value in answer.items() if value)
