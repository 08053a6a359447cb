"""What the kinds of map state differ in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from trident.states.control import ControlRecord
from trident.states.cut import Cut
from trident.states.serializers import Serializer
from trident.states.values import StateType


class Kind(ABC):
    """How one kind keeps its values; the first `tokens` columns of an entry tell who wrote it."""

    type: ClassVar[StateType]
    columns: ClassVar[tuple[str, ...]]
    tokens: ClassVar[int]

    @abstractmethod
    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        """Return the values that `entries` had at the cut; raises BatchMovedOn beyond its
        horizon."""

    def applied(
        self, keys: Sequence[bytes], entries: Sequence[Any], record: ControlRecord
    ) -> Iterable[bytes]:
        """Return those of `keys` that already hold what this batch makes of them."""
        return ()

    @abstractmethod
    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> Sequence[Any]:
        """Return the entries for new `values` of keys that :meth:`read` gave `befores` for."""

    @abstractmethod
    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        """Return whether `entry` says for good that its key is absent, so that it may go."""

    @abstractmethod
    def by_column(self, entries: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return `entries`, none of which is None, as columns."""

    @abstractmethod
    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the entries that are made of `rows`; a row of nulls is an absent key."""

    @abstractmethod
    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        """Return the bytes of `entries`, none of which is None."""

    @abstractmethod
    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        """Return the entries that :meth:`dumps` was given."""
