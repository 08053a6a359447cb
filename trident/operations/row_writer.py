"""The updater of tables of rows: hands the tuples on, as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from trident.backends.rows.target import Target
from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.tuples import TridentTuple


@dataclass(frozen=True)
class RowWriter(StateUpdater[Any]):
    """Writes tuples as rows; engines hand them to the state as columns."""

    target: Target

    anywhere = True

    @property
    def label(self) -> str:
        """The state's, as it is all that there is to say."""
        return str(self.target)

    def updateState(
        self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> NoReturn:
        raise NotImplementedError("engines call RowsState.append")
