"""The adapter for a store that adds amounts to opaque values by itself, as SQLite does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.table.adapters import FencedTable


class AddingTable(FencedTable):
    """Finds the committed value, adds to it and writes, all in the store's own step."""

    adds = True

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        token, retried = self._record.token, self._record.retried
        if not self._store.multiAddFenced(keys, amounts, token, retried, self._fence):
            raise self._refused()
