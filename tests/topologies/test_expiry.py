"""An updater removes keys and lets them expire, on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.topologies.conftest import Engine
from trident import MapGet, ReducerAggregator, StateUpdater, TridentCollector, TridentTopology
from trident.spouts.feeder import FeederBatchSpout
from trident.states import KeepUntil, MapState, ValueUpdater
from trident.states.maps.factory import MapStateFactory

PAST = datetime(2020, 1, 1, tzinfo=UTC)


class Seen(ValueUpdater):
    """Counts how often a word was seen, for as long as it is told."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def update(self, stored: Any) -> Any:
        until = datetime.now(UTC) + timedelta(seconds=self.seconds) if self.seconds else PAST
        return KeepUntil((stored or 0) + 1, until)


class See(StateUpdater[MapState]):
    def updateState(
        self, state: MapState, tuples: Sequence[Any], collector: TridentCollector
    ) -> None:
        keys = [(each["word"],) for each in tuples]
        counts = state.multiUpdate(keys, [Seen(each["seconds"]) for each in tuples])
        for (word,), count in zip(keys, counts, strict=True):
            collector.emit((word, count))


def test_a_value_that_has_expired_is_absent_for_queries_and_for_the_next_batch(
    engine: Engine, kept: MapStateFactory
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string, seconds long")
    words = topology.newStream("s", spout)
    by_word = words.partitionBy("word")
    state = by_word.partitionPersist(kept, "word, seconds", See(), "word string, seen long")
    fresh = engine.capture(state.newValuesStream(), "fresh")
    before = words.stateQuery(state, "word", MapGet(), "before long").project("word, before")
    asked = engine.capture(before, "asked")
    day = 86_400
    engine.play(topology, spout, [("a", day), ("b", 0)], [("a", day), ("b", day)])
    assert asked.batches == [[("a", None), ("b", None)], [("a", 1), ("b", None)]]
    assert fresh.batches[1] == [("a", 2), ("b", 1)]
    kept_state: Any = kept.makeState()
    assert kept_state.multiGet([("a",), ("b",)]) == [2, 1]
    kept_state.close()


class Open(ReducerAggregator[Any]):
    """Counts the visitors inside; a group that nobody is in any more has no value."""

    output_types = (int,)

    def init(self) -> int:
        return 0

    def reduce(self, curr: Any, tuple: Any) -> Any:
        return ((curr or 0) + tuple[0]) or None


def test_a_key_whose_new_value_is_none_is_removed(engine: Engine, kept: MapStateFactory) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("room string, change long")
    rooms = topology.newStream("s", spout).groupBy("room")
    inside = rooms.persistentAggregate(kept, "change", Open(), "inside")
    fresh = engine.capture(inside.newValuesStream(), "fresh")
    batches = [("a", 2), ("b", 1)], [("a", -1), ("b", -1)], [("a", -1), ("b", 3)]
    engine.play(topology, spout, *batches)
    assert fresh.batches == [
        [("a", 2), ("b", 1)],
        [("a", 1), ("b", None)],
        [("a", None), ("b", 3)],
    ]
    kept_state: Any = kept.makeState()
    assert kept_state.multiGet([("a",), ("b",)]) == [None, 3]
    kept_state.close()
