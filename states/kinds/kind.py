"""What each kind of map state has to say: how its entries are read, written and stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

from trident.states.control import ControlRecord
from trident.states.cut import Cut
from trident.states.serializers import Serializer, load_all
from trident.states.values import StateType


class Kind(ABC):
    """Makes entries of values and reads them; the first `tokens` columns say who wrote an entry."""

    type: ClassVar[StateType]
    columns: ClassVar[tuple[str, ...]]
    tokens: ClassVar[int]
    entry: ClassVar[Any]
    """The class of an entry that is a tuple of its columns."""

    @abstractmethod
    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        """Return the values of `entries` at the cut; raise BatchMovedOn beyond its horizon."""

    def applied(
        self, keys: Sequence[bytes], entries: Sequence[Any], record: ControlRecord
    ) -> Iterable[bytes]:
        """Return those of `keys` whose entries already hold this batch's update."""
        return ()

    @abstractmethod
    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> Sequence[Any]:
        """Return entries of new `values`; `befores` are the values that :meth:`read` returned."""

    @abstractmethod
    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        """Return whether the key of `entry` is absent for good: then the entry may be removed."""

    def by_column(self, entries: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return `entries`, none of which is None, as columns."""
        return list(zip(*entries, strict=True)) or [()] * len(self.columns)

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return an entry for each row; None for a row of nulls, which is an absent key."""
        make = partial(tuple.__new__, self.entry)  # twice as fast as OpaqueValue(...)
        return [entry if entry[0] is not None else None for entry in map(make, rows)]

    @abstractmethod
    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        """Return the bytes of `entries`, none of which is None."""

    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        """Return the entries that :meth:`dumps` was given."""
        return load_all(serializer, data, self.of_loaded)

    @staticmethod
    def of_loaded(value: Any) -> Any:
        """Return the entry of a value that the serializer has loaded."""
        return value
