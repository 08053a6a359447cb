"""Requests that are answered together: by one look at each state, and each for itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tests.state_service.asking import HeldMap, entries, over, static
from trident import TridentTopology
from trident.backends.memory import MemoryMap
from trident.drpc.errors import DRPCInternalError, MalformedRequestError
from trident.state_service.errors import NoSuchKeyError
from trident.state_service.reads import StateObjects, StateReads
from trident.state_service.requests import StateRequest
from trident.state_service.served_states import served_states


@contextmanager
def reading(topology: TridentTopology) -> Iterator[StateReads]:
    """What answers for all states of a topology."""
    served = served_states(topology.plan(), runs_here=True)
    objects = {name: StateObjects(state) for name, state in served.items()}
    yield StateReads("some states", objects, 1000)
    for each in objects.values():
        each.close()


def key(text: str, state: str = "counts") -> str:
    return StateRequest("committed", "key", state, text).encode()


def values(answers: Sequence[Any]) -> list[Any]:
    return [json.loads(answer)["value"] for answer in answers]


def test_requests_for_one_state_read_it_once_and_each_key_once() -> None:
    store = HeldMap()
    factory = entries({f"k{n}": n for n in range(20)}, over(store))
    several = StateRequest("committed", "keys", "counts", '{"keys": ["k1", "k2", "k1"]}').encode()
    with reading(static(counts=factory)) as reads:
        store.asked.clear()
        *answers, batch = reads.answer_together([*(key(f"k{n}") for n in range(20)), several])
    assert values(answers) == list(range(20))
    assert json.loads(batch)["values"] == [1, 2, 1]
    assert [len(keys) for keys in store.asked] == [20]


def test_requests_for_other_states_or_reads_are_answered_beside_each_other() -> None:
    topology = static(counts=entries({"a": 1}), other=entries({"a": 2}))
    both = '{"states": {"counts": ["a"], "other": ["a"]}}'
    with reading(topology) as reads:
        one, other, latest, together = reads.answer_together(
            [
                key("a"),
                key("a", "other"),
                StateRequest("latest", "key", "counts", "a").encode(),
                StateRequest("committed", "states", "", both).encode(),
            ]
        )
    assert values([one, other, latest]) == [1, 2, 1]
    found = json.loads(together)["states"]
    assert [found[name]["values"] for name in ("counts", "other")] == [[1], [2]]


class PoisonedMap(MemoryMap):
    def multiGet(self, keys: Any) -> Any:
        if b"poisoned" in keys:
            raise ValueError("internals")
        return super().multiGet(keys)


def test_what_fails_for_one_request_fails_for_no_other() -> None:
    factory = entries({"a": 1, "b": 2}, over(PoisonedMap("poisoned")))
    with reading(static(counts=factory)) as reads:
        a, poisoned, b, malformed, absent = reads.answer_together(
            [key("a"), key("poisoned"), key("b"), key("[5"), key("c")]
        )
    assert values([a, b]) == [1, 2]
    assert isinstance(poisoned, DRPCInternalError)
    assert isinstance(malformed, MalformedRequestError)
    assert isinstance(absent, NoSuchKeyError)


def test_the_objects_of_a_state_are_used_again_and_closed_in_the_end() -> None:
    [served] = served_states(static(counts=entries({})).plan(), runs_here=True).values()
    objects = StateObjects(served)
    with closing(objects):
        first, second = objects.take(), objects.take()
        assert first is not second
        closed = []
        for state in (first, second):
            state.close = lambda state=state: closed.append(state)  # type: ignore[misc]
        objects.give_back(first)
        assert objects.take() is first
        objects.give_back(first)
    assert closed == [first]
    objects.give_back(second)
    assert closed == [first, second]
