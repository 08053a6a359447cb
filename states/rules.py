"""What the kinds of map state differ in: how an entry is read, written and judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from trident.states.control import ControlRecord
from trident.states.resolution import Cut
from trident.states.values import StateType


class Rules(ABC):
    """The rules of one kind; `stored` is a sequence of its value objects, None for absent."""

    kind: StateType

    @abstractmethod
    def read(self, stored: Sequence[Any], record: ControlRecord) -> list[Any]:
        """Return the values that the batch of `record` updates.

        Raises StaleBatchError where an entry was written by a later attempt.
        """

    def applied(
        self, keys: Sequence[bytes], stored: Sequence[Any], record: ControlRecord
    ) -> Iterable[bytes]:
        """Return those of `keys` that already hold what this batch makes of them."""
        return ()

    @abstractmethod
    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> Sequence[Any]:
        """Return the entries for new `values` of keys that :meth:`read` gave `befores` for."""

    @abstractmethod
    def at_cut(self, stored: Sequence[Any], cut: Cut) -> list[Any]:
        """Return the values that a reader outside the batch sees."""

    @abstractmethod
    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        """Return whether `entry` says for good that its key is absent, so that it may go."""
