"""A state machine that plays the protocol's misfortunes on the library's own classes.

It acts as the log and the driver. Hypothesis decides what happens next: attempts crash, replays
have other content, tasks run twice or late, overtaken drivers go on, servers lose acknowledged
writes, and readers ask at any moment. The states are compared with the committed batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.control import Control, ControlRecord
from trident.states.errors import FailedException, NoStateError, StaleBatchError
from trident.states.keys import encode_key
from trident.states.maps.factory import OpaqueMap
from trident.states.maps.reading import read_committed
from trident.states.maps.stored_map import StoredMap
from trident.states.table.cache import CachedMap
from trident.states.table.table import LayeredMap
from trident.states.testing.checks import following
from trident.states.testing.unlucky import UnluckyStore
from trident.states.updaters import ValueUpdater
from trident.states.values import StateType, Token

KEYS = ("a", "b", "c")
Content = dict[str, bool]
"""The keys that a batch updates in one state: True adds to the value, False removes it."""
Values = tuple[dict[str, int], dict[str, int]]
_PRIME = 2**53 - 111
"""The largest prime that a double holds exactly."""

CONTENTS = st.tuples(
    *[st.dictionaries(st.sampled_from(KEYS), st.sampled_from([True, True, False]))] * 2
)
MISFORTUNES = st.sampled_from(["", "", "", "", "refuse", "crash", "lose_answer", "hold"])
_CONDITIONAL = {Ability.FENCED, Ability.ENTRY, Ability.VERSIONED}
REACHED = st.sampled_from([2, 2, 2, 1, 0])


@dataclass(frozen=True)
class Appended(ValueUpdater):
    """Appends the number of the emission to the value, in three digits; or removes the value."""

    emission: int
    adds: bool

    def update(self, stored: int | None) -> int | None:
        return _appended(stored or 0, self.emission) if self.adds else None


class _AppendCombiner:
    """Does as :class:`Appended`, as a combiner."""

    adds = False

    def combine(self, left: int, right: int) -> int:
        return _appended(left, right)


def _appended(before: float, emission: int) -> int:
    return (int(before) * 1000 + emission) % _PRIME


@dataclass(eq=False)
class DriverAttempt:
    """One attempt of a batch, and the driver that runs it."""

    driver: int
    record: ControlRecord
    emission: int
    content: Sequence[Content]
    controls: Sequence[Control]
    caches: Sequence[IBackingMap | LayeredMap]
    done: set[int] = field(default_factory=set)
    begun: int = 0


@dataclass(eq=False)
class StateTask:
    """One attempt's updates of one state, which are computed and perhaps not yet written."""

    attempt: DriverAttempt
    state: int
    map: StoredMap


class StatesMachine(RuleBasedStateMachine):
    """Plays misfortunes on two states of one log, over a backing map.

    Subclass it, define how a map is made, and run its ``TestCase``. ``cache_size`` puts a cache
    over the map, ``state`` is the class of the states.

    Notes
    -----
    ``make_map()`` and ``reopen(map)`` are those of
    :class:`~trident.states.testing.suite.BackingMapConformance`.

    Examples
    --------
    >>> from hypothesis import settings
    >>> from uuid import uuid4
    >>> from trident.backends.memory import MemoryMap
    >>> class Machine(StatesMachine):
    ...     def make_map(self):
    ...         return MemoryMap(uuid4().hex)
    >>> TestMachine = Machine.TestCase
    >>> TestMachine.settings = settings(max_examples=2, deadline=None, database=None)
    >>> TestMachine().runTest()
    """

    state: ClassVar[type[StoredMap]] = OpaqueMap
    control: ClassVar[type[Control]] = Control
    cache_size: ClassVar[int] = 0
    """How many entries the driver, as the only writer, caches; 0 for no cache."""
    read: ClassVar[Callable[..., Any]] = staticmethod(read_committed)

    def __init__(self) -> None:
        super().__init__()
        self.servers = self._server(), self._server()
        self.history: list[Values] = [({}, {})]
        self.retried: dict[int, int] = {}
        self.listed: list[Token | None] = [None, None]
        self.emissions: list[Sequence[Content]] = []
        self.driver = 0
        self.next_attempt = 0
        self.floor = 0
        self.attempts: list[DriverAttempt] = []
        self.tasks: list[StateTask] = []
        self.unannounced: list[tuple[Control, ControlRecord]] = []
        self.caches = self._caches()
        self._catch_up()

    @property
    def committed(self) -> int:
        return len(self.history) - 1

    @property
    def transactional(self) -> bool:
        return self.state.kept_as.type is StateType.TRANSACTIONAL

    def make_map(self) -> IBackingMap:
        """Return a map over a new, empty store."""
        raise NotImplementedError

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        """Return another map over the same entries, as another process would open it."""
        reached: IBackingMap = pickle.loads(pickle.dumps(backing))
        return reached

    def loss(self, backing: IBackingMap) -> Callable[[int], object] | None:
        """Return a function that lets the store lose its newest changes; None if it keeps all."""
        return None

    def _server(self) -> UnluckyStore:
        """Return a new, empty store for one state."""
        first = self.make_map()
        return UnluckyStore(lambda: self.reopen(first), self.loss(first))

    def layers(self, backing: IBackingMap) -> IBackingMap | LayeredMap:
        """Return the map of a driver's states, perhaps with layers."""
        return CachedMap(backing, self.cache_size) if self.cache_size else backing

    def _caches(self) -> Sequence[IBackingMap | LayeredMap]:
        return [self.layers(server.open()) for server in self.servers]

    def backing(self, attempt: DriverAttempt, state: int) -> IBackingMap | LayeredMap:
        """Return the map that a task of `attempt` writes."""
        return attempt.caches[state]

    def record(self, token: Token, emission: int | None = None) -> ControlRecord:
        """Return the record of an attempt; it writes an emission, if it writes anything."""
        return ControlRecord("log", token, self.committed, dict(self.retried))

    def begun(self, task: StateTask) -> None:
        """Do what a task does before its updates; nothing by default."""

    # Drivers.

    @rule(content=CONTENTS, begun=REACHED)
    def begin(self, content: Sequence[Content], begun: int) -> None:
        """The driver begins the next attempt; it may stop before both states have begun."""
        self._begin(content, begun)

    def _begin(self, content: Sequence[Content], begun: int) -> None:
        txid = self.committed + 1
        same = [one for one in self.attempts if one.record.token.txid == txid]
        if self.transactional and same:
            content, emission = same[0].content, same[0].emission
        else:
            self.emissions.append(content)
            emission = len(self.emissions)
        token = Token(txid, self.next_attempt)
        self.next_attempt += 1
        record = self.record(token, emission)
        controls = [self.control(server.open()) for server in self.servers]
        attempt = DriverAttempt(self.driver, record, emission, content, controls, self.caches)
        self.attempts.append(attempt)
        self._go_on(attempt, begun)

    def _go_on(self, attempt: DriverAttempt, begun: int) -> None:
        try:
            for state in range(attempt.begun, begun):
                control, record = attempt.controls[state], attempt.record
                control.begin(record, following(control, record, self.listed[state]))
                attempt.begun = state + 1
        except (FailedException, StaleBatchError):
            return
        if attempt.begun == 2:
            for state in (0, 1):
                self._start_task(attempt, state)

    @rule(
        content=CONTENTS,
        replay=CONTENTS,
        misfortune=MISFORTUNES | st.just("fail_over"),
        announced=REACHED,
    )
    def process(
        self, content: Sequence[Content], replay: Sequence[Content], misfortune: str, announced: int
    ) -> None:
        """A driver processes a batch; if that fails, it replays the batch without misfortunes."""
        before = self.committed
        self._begin(content, 2)
        self._finish(announced, misfortune)
        if self.committed == before:
            self._begin(replay, 2)
            self._finish(announced)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def go_on_late(self, data: st.DataObject) -> None:
        """A driver that stopped between two begins goes on."""
        attempt = data.draw(st.sampled_from(self.attempts))
        if attempt.begun < 2 and attempt.record.committed <= self.committed:
            self._go_on(attempt, 2)

    def _start_task(self, attempt: DriverAttempt, state: int) -> None:
        task = StateTask(attempt, state, self.state(self.backing(attempt, state)))
        try:
            task.map.beginCommit(attempt.record)
            self.begun(task)
            content = attempt.content[state]
            kept = [encode_key((key,)) for key, adds in content.items() if adds]
            removed = [(key,) for key, adds in content.items() if not adds]
            # Nobody uses these new values, so they may be computed from stale cached entries.
            task.map.multiFold(kept, [attempt.emission] * len(kept), _AppendCombiner())
            task.map.multiUpdate(removed, [Appended(attempt.emission, adds=False)] * len(removed))
        except (FailedException, StaleBatchError):
            return
        self.tasks.append(task)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), misfortune=MISFORTUNES, again=st.booleans())
    def write(self, data: st.DataObject, misfortune: str, again: bool) -> None:
        """A task writes, in time or late; a duplicate of it may start before that."""
        task = data.draw(st.sampled_from(self.tasks))
        if again and (not self.cache_size or task.attempt is self.attempts[-1]):
            self._start_task(task.attempt, task.state)
        server = self.servers[task.state]
        if misfortune:
            self._meet(misfortune, server)
        self._write(task)
        server.calm()

    def _meet(self, misfortune: str, server: UnluckyStore) -> None:
        match misfortune:
            case "refuse":
                server.refuse()
            case "crash":
                server.crash(after=1)
            case "lose_answer":
                server.lose_answer()
            # Nothing is promised of a late write without a condition.
            case "hold" if abilities(server.open()) & _CONDITIONAL:
                server.hold()

    def _write(self, task: StateTask) -> None:
        self.tasks.remove(task)
        try:
            task.map.commit(task.attempt.record)
        except (FailedException, StaleBatchError):
            return
        task.attempt.done.add(task.state)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), announced=REACHED)
    def commit(self, data: st.DataObject, announced: int) -> None:
        """A driver whose tasks are done makes both states ready, commits, and announces."""
        self._commit(data.draw(st.sampled_from(self.attempts[-3:])), announced)

    def _commit(self, attempt: DriverAttempt, announced: int) -> None:
        record = attempt.record
        if attempt.done != {0, 1} or record.token.txid != self.committed + 1:
            return
        try:
            ready = [control.ready(record) for control in attempt.controls]
        except (FailedException, StaleBatchError):
            return
        # The log lets only its newest attempt commit, and only by the driver that began it.
        if attempt.driver != self.driver or record.token.attempt != self.next_attempt - 1:
            return
        if record.token.attempt:
            self.retried[record.token.txid] = record.token.attempt
        self.history.append(self._after(attempt))
        self.listed = [record.token, record.token]
        self.next_attempt = 0
        waiting = list(zip(attempt.controls, ready, strict=True))
        for control, each in waiting[:announced]:
            control.announce(each)
        self.unannounced += waiting[announced:]
        if announced == 2:
            self.floor = self.committed

    def _after(self, attempt: DriverAttempt) -> Values:
        before = self.history[-1]
        after = dict(before[0]), dict(before[1])
        for values, content in zip(after, attempt.content, strict=True):
            for key, adds in content.items():
                value = Appended(attempt.emission, adds).update(values.pop(key, None))
                if value is not None:
                    values[key] = value
        return after

    @precondition(lambda self: self.unannounced)
    @rule(data=st.data())
    def announce_late(self, data: st.DataObject) -> None:
        """A driver that stopped before an announcement goes on."""
        control, ready = data.draw(st.sampled_from(self.unannounced))
        control.announce(ready)

    @rule()
    def take_over(self) -> None:
        """Another driver starts; the one before is still alive."""
        self.driver += 1
        self.next_attempt += 1
        self.caches = self._caches()
        self._catch_up()
        self.floor = self.committed

    def _catch_up(self) -> None:
        for server, listed in zip(self.servers, self.listed, strict=True):
            control = self.control(server.open())
            reserved = Token(self.committed + 1, self.next_attempt)
            own = self.record(reserved)
            control.catch_up(own, following(control, own, listed))

    # Stores.

    @rule(state=st.sampled_from([0, 1]), lost=st.integers(0, 4))
    def fail_over(self, state: int, lost: int) -> None:
        """Another server takes over, without the newest unconfirmed changes."""
        self.servers[state].fail_over(lost)
        records = [self.control(server.open()).read() for server in self.servers]
        self.floor = min(record.committed if record else 0 for record in records)

    @rule(state=st.sampled_from([0, 1]))
    def arrive(self, state: int) -> None:
        """Delayed writes arrive."""
        self.servers[state].release()

    # Readers.

    @rule(meanwhile=st.booleans())
    def ask(self, meanwhile: bool) -> None:
        """A reader asks both states; between the two a task may write, or a batch commit."""
        if self.transactional:
            return
        floor = self.floor

        def query(views: Sequence[Any]) -> list[dict[str, int]]:
            nonlocal meanwhile
            first = _values(views[0])
            if meanwhile:
                meanwhile = False
                self._finish()
            return [first, _values(views[1])]

        readers = [self.state(server.open()) for server in self.servers]
        try:
            found = self.read([("group", reader) for reader in readers], query)
        except FailedException:
            return
        except NoStateError:
            # A server may lose the first record of a state before any batch was confirmed.
            records = [self.control(server.open()).read() for server in self.servers]
            assert None in records, "a reader did not find a state that is there"
            return
        possible = [list(values) for values in self.history[floor:]]
        assert found in possible, f"a reader saw {found}, committed were {possible}"

    def _finish(self, announced: int = 2, misfortune: str = "") -> None:
        for task in list(self.tasks):
            if task.attempt is self.attempts[-1]:
                if misfortune and task.state == 0:
                    self._meet(misfortune, self.servers[0])
                self._write(task)
                self.servers[0].calm()
        if self.attempts:
            if misfortune == "fail_over":
                self.fail_over(state=0, lost=2)
            self._commit(self.attempts[-1], announced)

    def teardown(self) -> None:
        """All late writes arrive; then a driver works alone."""
        try:
            self._end()
        finally:
            for server in self.servers:
                server.close()

    def _end(self) -> None:
        for task in list(self.tasks):
            self._write(task)
        for server in self.servers:
            server.release()
        self._alone()
        self._alone()
        for state, server in enumerate(self.servers):
            found = _values(self.state(server.open()))
            expected = self.history[-1][state]
            assert found == expected, f"state {state} holds {found} instead of {expected}"

    def _alone(self) -> None:
        self.take_over()
        before = self.committed
        content = dict.fromkeys(KEYS, True)
        self._begin((content, content), begun=2)
        self._finish()
        assert self.committed == before + 1, "a driver that works alone could not commit"


def _values(view: Any) -> dict[str, int]:
    found = view.multiGet([(key,) for key in KEYS])
    return {key: value for key, value in zip(KEYS, found, strict=True) if value is not None}
