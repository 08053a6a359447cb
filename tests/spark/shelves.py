"""A partitioned source in files, which executors read: each partition is a file of rows."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from trident import Fields
from trident.errors import SourceUnavailableError
from trident.states import Token
from trident.storm import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, SpoutCollector

FIELDS = Fields(part=str, text=str, number=int)
_ARROW = pa.schema({"part": pa.string(), "text": pa.string(), "number": pa.int64()})

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Shelf:
    """A folder of files, one for each partition, and of what the tests put beside them.

    Parameters
    ----------
    folder : str
        The folder.
    size : int
        How many rows of each partition a batch takes.
    how : str
        Whether emitters give ``"rows"``, ``"columns"`` or ``"arrow"``.
    """

    folder: str
    size: int = 2
    how: str = "rows"

    def add(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows, of a text and a number each, to a partition; it is there from then on."""
        with self._path(f"part-{name}").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def put(self, what: str) -> Path:
        """Put a file into the folder: ``away-…`` or ``hidden-…``, ``kill-…`` with a name behind."""
        path = self._path(what)
        path.touch()
        return path

    @property
    def names(self) -> list[str]:
        """The partitions that are there."""
        found = sorted(path.name[5:] for path in Path(self.folder).glob("part-*"))
        return [name for name in found if not self._path(f"hidden-{name}").exists()]

    def read(self, name: str, start: int, end: int | None = None) -> list[Row]:
        """Rows of a partition from one position to another."""
        if self._path(f"away-{name}").exists():
            raise SourceUnavailableError(f"shelf {name}", "it is away")
        lines = self._path(f"part-{name}").read_text().splitlines()
        found = lines[start : start + self.size if end is None else end]
        return [(name, *json.loads(line)) for line in found]

    def emit(self, collector: SpoutCollector, rows: Sequence[Row]) -> None:
        """Emit rows in the way of this shelf."""
        if self.how == "rows":
            for row in rows:
                collector.emit(row)
            return
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        if self.how == "columns":
            collector.emitColumns(dict(zip(FIELDS.names, columns, strict=True)))
            return
        arrays = map(pa.array, columns, _ARROW.types)
        collector.emitColumns(pa.RecordBatch.from_arrays(list(arrays), schema=_ARROW))

    def note(self, *event: Any) -> None:
        """Note an event, with the process that it happened in."""
        with self._path("events").open("a") as file:
            file.write(json.dumps([os.getpid(), *event]) + "\n")

    @property
    def events(self) -> list[list[Any]]:
        """What was noted, each with its process first."""
        path = self._path("events")
        return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []

    def die_if_told(self, name: str) -> None:
        """Kill this process where a file says so, once."""
        path = self._path(f"kill-{name}")
        if path.exists():
            path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    def _path(self, name: str) -> Path:
        return Path(self.folder) / name


@dataclass(frozen=True)
class Part:
    name: str

    def getId(self) -> str:
        return self.name


class Parts(IPartitionedTridentSpout.Coordinator):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getPartitionsForBatch(self) -> Any:
        return self.shelf.names


class OpaqueRows(IOpaquePartitionedTridentSpout.Emitter):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        shelf.note("made")

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[Part]:
        return [Part(name) for name in allPartitionInfo]

    def refreshPartitions(self, partitionResponsibilities: Any) -> None:
        self.shelf.note("refreshed", *(each.name for each in partitionResponsibilities))

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> Any:
        start = lastMetadata or 0
        rows = self.shelf.read(partition.name, start)
        self.shelf.emit(collector, rows)
        self.shelf.note("emitted", partition.name, tx.txid, start, start + len(rows))
        self.shelf.die_if_told(partition.name)
        return start + len(rows)

    def close(self) -> None:
        self.shelf.note("closed")


class TransactionalRows(IPartitionedTridentSpout.Emitter):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        shelf.note("made")

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[Part]:
        return [Part(name) for name in allPartitionInfo]

    def refreshPartitions(self, partitionResponsibilities: Any) -> None:
        self.shelf.note("refreshed", *(each.name for each in partitionResponsibilities))

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> Any:
        start = lastMetadata["end"] if lastMetadata else 0
        told = {"start": start, "end": start + len(self.shelf.read(partition.name, start))}
        self.emitPartitionBatch(tx, collector, partition, told)
        return told

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, metadata: Any
    ) -> None:
        start, end = metadata["start"], metadata["end"]
        self.shelf.emit(collector, self.shelf.read(partition.name, start, end))
        self.shelf.note("emitted", partition.name, tx.txid, start, end)
        self.shelf.die_if_told(partition.name)

    def close(self) -> None:
        self.shelf.note("closed")


class OpaqueShelf(IOpaquePartitionedTridentSpout):
    """Reads a shelf as an opaque stream."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> Parts:
        return Parts(self.shelf)

    def getEmitter(
        self, conf: Mapping[str, Any], context: Any
    ) -> IOpaquePartitionedTridentSpout.Emitter:
        return OpaqueRows(self.shelf)

    def getOutputFields(self) -> Fields:
        return FIELDS


class TransactionalShelf(IPartitionedTridentSpout):
    """Reads a shelf as a transactional stream."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> Parts:
        return Parts(self.shelf)

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> IPartitionedTridentSpout.Emitter:
        return TransactionalRows(self.shelf)

    def getOutputFields(self) -> Fields:
        return FIELDS
