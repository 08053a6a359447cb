"""What some partitions of a spout emit: the same in the driver's process and in a task."""

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
    """One partition, and where in it a batch begins.

    Parameters
    ----------
    partition : ISpoutPartition
        The partition.
    metadata : object or None
        What is known of its last committed batch; where it is emitted `again`, of this one.
    again : bool
        Whether the same tuples are due that an earlier attempt has emitted.
    """

    partition: ISpoutPartition
    metadata: Any
    again: bool


class Emitted(NamedTuple):
    """What became of one partition.

    Parameters
    ----------
    id : str
        Its id.
    tuples : int
        How many tuples it emitted.
    metadata : object or None
        What the spout said of them; None where it said nothing.
    away : str or None
        Why the partition couldn't be read; None where it could.
    """

    id: str
    tuples: int
    metadata: Any
    away: str | None = None


@dataclass(frozen=True)
class Emission:
    """What is emitted for one attempt; pickles, to where emitters run.

    Parameters
    ----------
    stream : str
        The stream's id.
    spout : IPartitionedTridentSpout or IOpaquePartitionedTridentSpout
        Its spout.
    fields : Fields
        The output fields.
    conf : mapping
        What emitters are made with.
    run : str
        The run, unique: emitters of another one are not used.
    token : Token
        The attempt.
    assignments : tuple of Assignment
        The partitions, in order.
    """

    stream: str
    spout: PartitionedSpout
    fields: Fields
    conf: Mapping[str, Any]
    run: str
    token: Token
    assignments: tuple[Assignment, ...]


class Emitting:
    """An emitter in the process that uses it, from batch to batch.

    Parameters
    ----------
    emission : Emission
        Any of the run's.
    step : StepName
        The call that declared the stream, for errors.
    collector : callable
        Makes what takes the tuples of a partition, of a spout's name and its fields.
    """

    def __init__(
        self,
        emission: Emission,
        step: StepName,
        collector: Callable[[str, Fields], SpoutCollector] = SpoutCollector,
    ) -> None:
        self._step = step
        with self._blamed(emission, "getEmitter()"):
            self._emitter = emission.spout.getEmitter(emission.conf, None)
        self._collector = collector
        self._ids: list[str] = []

    def emit(
        self, emission: Emission, assignments: Sequence[Assignment]
    ) -> Iterator[tuple[Sequence[Block], Emitted]]:
        """Emit some of an emission's partitions, one after the other.

        Raises
        ------
        OperationError
            What the spout raised, with the partition.
        FailedException
            The attempt failed.
        """
        ids = [assignment.partition.getId() for assignment in assignments]
        if ids != self._ids:
            try:
                with self._blamed(emission, f"partition {', '.join(ids)}"):
                    self._emitter.refreshPartitions([each.partition for each in assignments])
            except SourceUnavailableError as away:
                self._ids = []
                yield from (((), Emitted(name, 0, None, str(away))) for name in ids)
                return
            self._ids = ids
        for name, assignment in zip(ids, assignments, strict=True):
            yield self._one(emission, name, assignment)

    def close(self) -> None:
        """Release the emitter."""
        self._emitter.close()

    def _one(
        self, emission: Emission, name: str, given: Assignment
    ) -> tuple[Sequence[Block], Emitted]:
        spout = f"the spout of {emission.stream}, partition {name}"
        collector = self._collector(spout, emission.fields)
        emitter, known = self._emitter, given.metadata
        try:
            with self._blamed(emission, f"partition {name}"):
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
    def _blamed(self, emission: Emission, what: str) -> Iterator[None]:
        """Names the step in what the spout raises; what fails an attempt passes."""
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
