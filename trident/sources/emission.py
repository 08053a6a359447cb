"""Emits some partitions of a spout, in the driver's process or in a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from trident.errors import SourceUnavailableError
from trident.kernels.task import StepName
from trident.log.entry import check_metadata
from trident.operation_error import OperationError, operation_error
from trident.spouts.collector import SpoutCollector
from trident.spouts.partitioned import (
    ISpoutPartition,
    PartitionedSpout,
    TransactionalPartitionEmitter,
)
from trident.states.errors import FailedException
from trident.states.values import Token
from trident.tuples.block import Block
from trident.tuples.fields import Fields


class Assignment(NamedTuple):
    """One partition, and where in it a batch begins; if emitted `again`, where it began."""

    partition: ISpoutPartition
    metadata: Any
    again: bool


class Emitted(NamedTuple):
    """The result of one partition: its tuples, what the spout said of it, and why it is `away`."""

    id: str
    tuples: int
    metadata: Any
    away: str | None = None


@dataclass(frozen=True)
class Emission:
    """The partitions to emit for one attempt; pickles. Emitters of another `run` are not used."""

    stream: str
    spout: PartitionedSpout
    fields: Fields
    conf: Mapping[str, Any]
    run: str
    token: Token
    assignments: tuple[Assignment, ...]


class Emitting:
    """An emitter in the process that uses it, made with any emission of a run."""

    def __init__(
        self,
        emission: Emission,
        step: StepName,
        collector: Callable[[str, Fields], SpoutCollector] = SpoutCollector,
    ) -> None:
        self._step = step
        with self._naming(emission, "getEmitter()"):
            self._emitter = emission.spout.getEmitter(emission.conf, None)
        self._collector = collector
        self._ids: list[str] = []

    def emit(
        self, emission: Emission, assignments: Sequence[Assignment]
    ) -> Iterator[tuple[Sequence[Block], Emitted]]:
        """Emit partitions, one after the other; an error of the spout becomes an OperationError."""
        ids = [assignment.partition.getId() for assignment in assignments]
        if ids != self._ids:
            try:
                with self._naming(emission, f"partition {', '.join(ids)}"):
                    self._emitter.refreshPartitions([each.partition for each in assignments])
            except SourceUnavailableError as away:
                self._ids = []
                yield from (((), Emitted(name, 0, None, str(away))) for name in ids)
                return
            self._ids = ids
        for name, assignment in zip(ids, assignments, strict=True):
            yield self._one(emission, name, assignment)

    def close(self) -> None:
        self._emitter.close()

    def _one(
        self, emission: Emission, name: str, given: Assignment
    ) -> tuple[Sequence[Block], Emitted]:
        spout = f"the spout of {emission.stream}, partition {name}"
        collector = self._collector(spout, emission.fields)
        emitter, known = self._emitter, given.metadata
        try:
            with self._naming(emission, f"partition {name}"):
                if not isinstance(emitter, TransactionalPartitionEmitter):
                    known = emitter.emitPartitionBatch(
                        emission.token, collector, given.partition, known
                    )
                elif given.again:
                    emitter.emitPartitionBatch(emission.token, collector, given.partition, known)
                else:
                    known = emitter.emitPartitionBatchNew(
                        emission.token, collector, given.partition, known
                    )
                blocks = collector.blocks()
        except SourceUnavailableError as away:
            return (), Emitted(name, 0, None, str(away))
        check_metadata({f"{emission.stream}, partition {name}": known})
        return blocks, Emitted(name, sum(block.length for block in blocks), known)

    @contextmanager
    def _naming(self, emission: Emission, what: str) -> Iterator[None]:
        """Names the step in the spout's errors; those that fail an attempt pass."""
        try:
            yield
        except (FailedException, OperationError):
            raise
        except Exception as error:
            raise operation_error(
                error,
                step=f"{self._step.text}, {what}",
                declared=self._step.declared,
                token=emission.token,
            ) from None
