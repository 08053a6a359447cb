"""A state that keeps every tuple of every batch, so that tests see what a stream carried."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal
from uuid import uuid4

from trident.api.stream import Stream
from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.states.control import ControlRecord
from trident.states.state import Batch, State, StateFactory
from trident.states.values import StateType
from trident.tuples import TridentTuple


@dataclass(frozen=True)
class Captured(StateFactory):
    """What a stream carried, in a file a call and attempt: executors are other processes.

    Parameters
    ----------
    folder : Path
        Where the files are.
    hosted : str
        Whether executors write them, or the driver.
    """

    folder: Path
    hosted: Literal["driver", "executor"] = "executor"
    kind: ClassVar[StateType] = StateType.OPAQUE  # of the attempts of a batch the last one counts

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> CapturedState:
        return CapturedState(self.folder)

    @property
    def batches(self) -> list[list[tuple[Any, ...]]]:
        """The tuples of each batch that had any, of its last attempt, sorted by their look."""
        rows: dict[int, dict[int, list[tuple[Any, ...]]]] = {}
        for path in self.folder.glob("*.pickle"):
            txid, attempt, _ = path.stem.split("-", 2)
            found = pickle.loads(path.read_bytes())
            rows.setdefault(int(txid), {}).setdefault(int(attempt), []).extend(found)
        return [sorted(attempts[max(attempts)], key=repr) for _, attempts in sorted(rows.items())]

    @property
    def tuples(self) -> list[tuple[Any, ...]]:
        """The tuples of all batches."""
        return [values for batch in self.batches for values in batch]


class CapturedState(State):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: list[tuple[Any, ...]] = []

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows += rows

    def beginCommit(self, batch: Batch) -> None:
        self._rows = []

    def commit(self, batch: Batch) -> None:
        assert isinstance(batch, ControlRecord)
        self._folder.mkdir(exist_ok=True)
        name = f"{batch.token.txid}-{batch.token.attempt}-{uuid4().hex}.pickle"
        written = self._folder / f"{name}.part"  # a reader sees all or nothing
        written.write_bytes(pickle.dumps(self._rows))
        written.rename(self._folder / name)


class Capture(StateUpdater[CapturedState]):
    def updateState(
        self, state: CapturedState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        state.add([tuple(values) for values in tuples])


def captured_in(
    folder: Path, stream: Stream, hosted: Literal["driver", "executor"] = "executor"
) -> Captured:
    """Keep what a stream carries in a folder, as a state of the folder's name."""
    captured = Captured(folder, hosted)
    stream.partitionPersist(captured, stream.getOutputFields(), Capture(), name=folder.name)
    return captured
