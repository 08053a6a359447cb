"""What is known of a stream while a batch is compiled: a DataFrame, and Python steps upon it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from trident.kernels.conforming import checked
from trident.kernels.step import Step
from trident.kernels.task import Place
from trident.plan.nodes import Node
from trident.plan.types import field_type
from trident.spark.attempt import Attempt
from trident.spark.kernels import Kernel
from trident.spark.schemas import Schemas, selected


@dataclass(frozen=True)
class Maker:
    """The step that made a column in Python: where its type is declared, and errors point to."""

    node: Node
    place: Place


@dataclass(frozen=True)
class Input:
    """Tuples with which a batch begins.

    Parameters
    ----------
    frame : DataFrame
        The tuples.
    partitions : int
        How many partitions Spark reads them in; 0 for files without a line.
    """

    frame: DataFrame
    partitions: int


@dataclass(frozen=True)
class Flow:
    """A stream in the middle of a batch.

    Parameters
    ----------
    frame : DataFrame
        What Spark has been told so far.
    types : mapping of str to str or None
        The frame's columns; None where only the frame knows the type.
    steps : tuple of Step
        Python steps after it that aren't a stage yet.
    made : mapping of str to Maker
        The columns that those steps made.
    partitions : int
        How many partitions there are.
    deterministic : bool
        Whether making the steps' output twice gives the same.
    """

    frame: DataFrame
    types: Mapping[str, str | None]
    partitions: int
    steps: tuple[Step, ...] = ()
    made: Mapping[str, Maker] = field(default_factory=dict)
    deterministic: bool = True

    def then(self, step: Step, node: Node, *, deterministic: bool = True) -> Flow:
        """The flow with one more Python step, that of a node."""
        maker = Maker(node, step.place)
        return replace(
            self,
            steps=(*self.steps, *checked(step, node)),
            made={**self.made, **dict.fromkeys(node.facts.makes, maker)},
            deterministic=self.deterministic and deterministic,
        )

    def typed(self, names: Sequence[str]) -> dict[str, str]:
        """The types of columns.

        Raises
        ------
        FieldError
            Where the type of a column from Python isn't known.
        """
        return {name: self._type(name) for name in names}

    def _type(self, name: str) -> str:
        if name in self.made:
            return field_type(self.made[name].node, name)
        known = self.types[name]
        return self.frame.schema[name].dataType.simpleString() if known is None else known

    def settled(self, names: Sequence[str], attempt: Attempt, schemas: Schemas) -> Flow:
        """The flow as a DataFrame of exactly these columns: pending steps become one stage."""
        if not self.steps:
            if tuple(names) == tuple(self.types):
                return self
            known = {name: self.types[name] for name in names}
            return replace(self, frame=selected(self.frame, names), types=known)
        types = self.typed(names)
        schema = schemas.of(types)
        makers = tuple((name, self.made[name].place) for name in names if name in self.made)
        kernel = Kernel(self.steps, schema.arrow, makers, attempt, self.partitions)
        frame = self.frame.mapInArrow(kernel, schema.struct)
        if not self.deterministic:
            frame = frame.localCheckpoint(eager=True)
        return Flow(frame, types, self.partitions)
