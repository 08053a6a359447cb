"""A query whose look-ups can be counted and held up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from trident import MapGet, MemoryMapState, Split, TridentTopology
from trident.drpc.service import LocalDRPC
from trident.states.state import StateFactory

PATIENCE = 30.0
"""Seconds that a test waits for what must come."""


class HeldGet(MapGet):
    """Notes how many keys each look-up has, and waits where one of them is ``held``."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.begun = Event()
        self.go_on = Event()

    def batchRetrieve(self, state: Any, tuples: Sequence[Any]) -> Sequence[Any]:
        keys = [each[0] for each in tuples]
        self.asked.append(keys)
        if "held" in keys:
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        if "broken" in keys:
            raise ValueError("broken is no word")
        return super().batchRetrieve(state, tuples)


def counts(entries: dict[str, Any], factory: StateFactory | None = None) -> StateFactory:
    """A state with these entries, committed."""
    factory = factory or MemoryMapState.Factory()
    state: Any = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([(word,) for word in entries], list(entries.values()))
    state.commit(1)
    state.close()
    return factory


def asking(get: MapGet, factory: StateFactory) -> TridentTopology:
    """A topology with a function ``words``, which looks each word of its arguments up."""
    topology = TridentTopology()
    known = topology.newStaticState(factory, name="counts")
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .stateQuery(known, "word", get, "count")
        .project("word, count")
    )
    return topology


class Asked(Thread):
    """A call in a thread of its own."""

    def __init__(self, drpc: LocalDRPC, args: str, timeout: float | None = PATIENCE) -> None:
        super().__init__(daemon=True)
        self._drpc, self._args, self._timeout = drpc, args, timeout
        self.answer: str | BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._drpc.execute("words", self._args, self._timeout)
        except BaseException as error:
            self.answer = error

    def ended(self) -> str | BaseException | None:
        self.join(PATIENCE)
        return self.answer


@contextmanager
def held(get: HeldGet | None = None) -> Iterator[tuple[LocalDRPC, HeldGet]]:
    """A service whose first look-up is held up, until ``go_on`` is set."""
    get = get or HeldGet()
    topology = asking(get, counts({"a": 1, "b": 2}))
    with LocalDRPC(topology.plan(), most_waiting=10) as drpc:
        first = Asked(drpc, "held")
        assert get.begun.wait(PATIENCE)
        try:
            yield drpc, get
        finally:
            get.go_on.set()
            first.join(PATIENCE)


def until(holds: Any) -> None:
    """Wait for a condition."""
    pause = Event()
    for _ in range(int(PATIENCE / 0.002)):
        if holds():
            return
        pause.wait(0.002)
    raise AssertionError("it never came")
