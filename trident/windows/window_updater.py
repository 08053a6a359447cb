"""What the updaters of windows share: each takes a batch into open windows, and emits some.

Of its windows a state keeps what `trident.windows.window_contents` says, and what tells which
of them are open: where each key has come to for windows by count, the watermark and an agenda for
those by time. Which windows a batch ends follows from that and from the batch, so that an attempt
which is replayed ends the same ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from trident.operations.emitted import Row
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    TridentCollector,
    operation_name,
)
from trident.operations.state_updaters import AggregatingUpdater
from trident.states.maps.stored_map import StoredMap
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields
from trident.windows.window_contents import Aggregates, Contents, PaneTuples, WindowCollector

AnyAggregator = CombinerAggregator[Any] | ReducerAggregator[Any] | Aggregator[Any]


class WindowTuples(NamedTuple):
    """The tuples of a batch on their way into windows.

    `keys` has something that identifies the key of each tuple, and `key_of` makes of it the key by
    which panes are named. `times` is empty if the window has no field with times, `origins` if all
    tuples come from one partition. `fold` takes a label for each tuple, and returns for each label
    the aggregate of its tuples, for a combiner, or a list of their values.
    """

    length: int
    keys: Sequence[Hashable]
    key_of: Callable[[Any], Row]
    times: Sequence[Any]
    origins: Sequence[str]
    fold: Callable[[Sequence[Hashable]], Mapping[Any, Any]]


@dataclass(frozen=True)
class WindowUpdater(AggregatingUpdater[StoredMap]):
    """What the updaters of windows share; `group` is empty for the stream as a whole."""

    aggregator: AnyAggregator
    window: Any
    group: Fields
    inputs: Fields
    width: int

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.aggregator.deterministic

    @property
    def time_field(self) -> str | None:
        """The field with the time of tuples."""
        return None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that lead to it, where a watermark waits for the partitions of each."""
        return ()

    @property
    def shape(self) -> str:
        """What may not change while windows are open."""
        by = f", by {self.time_field}" if self.time_field else ""
        kept = "tuples" if isinstance(self.contents, PaneTuples) else "aggregates"
        return f"{self.window.shape}{by}, kept as {kept}"

    @property
    def pane_name(self) -> str:
        """The first field of the keys of panes with an aggregate."""
        return "pane"

    @property
    def contents(self) -> Contents:
        """What is kept of open windows."""
        aggregator = self.aggregator
        if isinstance(aggregator, CombinerAggregator):
            return Aggregates(aggregator, self.inputs, self.pane_name)
        if isinstance(aggregator, ReducerAggregator) and self.one_pane:
            return Aggregates(aggregator, self.inputs, self.pane_name)
        return PaneTuples(aggregator, self.inputs)

    @property
    @abstractmethod
    def one_pane(self) -> bool:
        """Whether each window is one pane."""

    def updateState(
        self, state: StoredMap, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> NoReturn:
        raise NotImplementedError("engines call update() with columns")

    @abstractmethod
    def update(self, state: StoredMap, given: WindowTuples, collector: TridentCollector) -> None:
        """Take a batch into the windows, and emit those that end."""

    def _collector(self, collector: TridentCollector) -> WindowCollector:
        return WindowCollector(operation_name(self.aggregator), self.width, collector)
