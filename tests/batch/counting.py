"""A word count small enough to read: what the tests run batches with."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn
from uuid import uuid4

from trident.backends.memory import MemoryMap
from trident.batch.adopt import Adopt
from trident.batch.computed import Postponed
from trident.batch.failures import FailurePolicy
from trident.batch.opening import LogTerms
from trident.batch.outcome import Outcome
from trident.batch.runner import BatchRunner
from trident.batch.states import BatchState
from trident.batch.work import BatchWork
from trident.log.log import Log
from trident.operations.builtin import Count
from trident.sources.emission import Emission
from trident.states.control import ControlRecord
from trident.states.keys import encode_keys
from trident.states.maps.factory import OpaqueMap
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token
from trident.tuples.block import block_of

STREAMS = {"words": "word string"}


class CountingEngine:
    """Counts the words of all streams in each of its states."""

    def __init__(self, *states: StoredMap, acts_on_nothing: bool = False) -> None:
        self.states = states
        self.acts_on_nothing = acts_on_nothing
        self.closed = False

    def read(self, emission: Emission) -> NoReturn:
        raise AssertionError("no spout of these tests has partitions")

    def run(self, record: ControlRecord, emitted: Mapping[str, Any]) -> Outcome:
        words = Counter(word for block in emitted.values() for (word,) in block.tuples(block.names))
        for state in self.states:
            state.beginCommit(record)
            keys = encode_keys([(word,) for word in words])
            state.multiCombine(keys, list(words.values()), Count())
            state.commit(record)
        return Outcome(tuples=words.total(), written=len(words) * len(self.states))

    def compute(self, record: ControlRecord, emitted: Mapping[str, Any]) -> Postponed:
        return Postponed("local", 0, lambda begun: self.run(begun, emitted))

    def write(self, record: ControlRecord, computed: Any) -> Outcome:
        return computed.run(record)

    def drop(self, emitted: Mapping[str, Any]) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class Words(BatchWork):
    """One batch of words, or what each attempt gets; notes what the runner asked for."""

    def __init__(
        self,
        engine: CountingEngine,
        *attempts: str,
        plans: Mapping[str, Any] | None = None,
        interrupt: Callable[[ControlRecord], None] = lambda record: None,
    ) -> None:
        self.engine = engine
        self.attempts = list(attempts)
        self.plans = plans
        self.interrupt = interrupt
        self.calls: list[Any] = []

    def plan(self, txid: int, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.calls.append(("plan", txid, dict(metadata)))
        return self.plans

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        self.calls.append(("emit", token, {**metadata, **planned}))
        text = self.attempts.pop(0) if len(self.attempts) > 1 else self.attempts[0]
        self.words = block_of(["word"], [(word,) for word in text.split()])
        return bool(self.words.length)

    def write(self, record: ControlRecord, computed: Any) -> Outcome:
        self.calls.append(("run", record.token))
        outcome = self.engine.run(record, {"words": self.words})
        self.interrupt(record)
        return outcome

    def committed(self, token: Token) -> None:
        self.calls.append(("committed", token))

    def called(self, *names: str) -> list[Any]:
        return [call[:2] for call in self.calls if call[0] in names]


def memory_state() -> OpaqueMap:
    """An opaque map with entries of its own."""
    return OpaqueMap(MemoryMap(uuid4().hex))


def seen_elsewhere(state: OpaqueMap) -> OpaqueMap:
    """Another driver's object for the same state."""
    return OpaqueMap(state.backing)


def make_runner(
    log: Log,
    *states: StoredMap,
    source: str = "the source",
    stopping: threading.Event | None = None,
    **policy: Any,
) -> BatchRunner:
    """A runner that is not open yet, whose states are called count, count2 …"""
    names = ["count", *(f"count{index}" for index in range(2, len(states) + 1))]
    return BatchRunner(
        log,
        {name: BatchState(state) for name, state in zip(names, states, strict=False)},
        group="words",
        source=source,
        policy=FailurePolicy(**{"backoff": 0.0, **policy}),
        stopping=stopping,
    )


def open_runner(
    log: Log,
    *states: StoredMap,
    adopt: Adopt | None = None,
    accept_loss: Mapping[str, int] | None = None,
    **options: Any,
) -> BatchRunner:
    runner = make_runner(log, *states, **options)
    runner.open(LogTerms(streams=STREAMS, adopt=adopt, accept_loss=accept_loss or {}))
    return runner


def counts(state: StoredMap, words: str) -> list[int | None]:
    return state.multiGet([(word,) for word in words.split()])


def run_all(works: Sequence[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
