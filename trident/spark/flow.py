"""A stream while a batch is compiled: a DataFrame, and the kernels that follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from trident.kernels.kernel import Kernel
from trident.kernels.task import step_name
from trident.kernels.type_check import with_type_check
from trident.operations.annotations import known_type
from trident.plan.field_type import field_type
from trident.plan.nodes import Node
from trident.spark.schemas import Schemas, selected
from trident.spark.stage import PythonStage, StageContext


@dataclass(frozen=True)
class InputFrame:
    """Tuples with which a batch begins.

    Parameters
    ----------
    frame : DataFrame
        The tuples.
    partitions : int
        How many partitions Spark reads them in; 0 for files without a line.
    kernels : tuple of Kernel
        What makes the tuples of the frame's rows, where those are others.
    """

    frame: DataFrame
    partitions: int
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Flow:
    """A stream in the middle of a batch.

    Parameters
    ----------
    frame : DataFrame
        What Spark has been told so far.
    types : mapping of str to str or None
        The frame's columns; None where only the frame knows the type.
    kernels : tuple of Kernel
        What follows it in Python, and isn't a stage yet.
    made : mapping of str to Node
        The columns that these kernels make, and the steps that they belong to.
    partitions : int
        How many partitions there are.
    deterministic : bool
        Whether the kernels make the same when they run again.
    """

    frame: DataFrame
    types: Mapping[str, str | None]
    partitions: int
    kernels: tuple[Kernel, ...] = ()
    made: Mapping[str, Node] = field(default_factory=dict)
    deterministic: bool = True

    def then(self, kernel: Kernel, node: Node, *, deterministic: bool = True) -> Flow:
        """The flow with the kernel of one more step."""
        return self.then_all(with_type_check(kernel, node), [node], deterministic=deterministic)

    def then_all(
        self, kernels: Sequence[Kernel], nodes: Sequence[Node], *, deterministic: bool = True
    ) -> Flow:
        """The flow with the kernels of some more steps, and of their checks."""
        return replace(
            self,
            kernels=(*self.kernels, *kernels),
            made={**self.made, **{name: node for node in nodes for name in node.facts.makes}},
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
            return field_type(self.made[name], name)
        if (known := self.types[name]) is not None:
            return known
        sparks = self.frame.schema[name].dataType.simpleString()
        return known_type(sparks) or sparks  # which has no quotes about a struct's names

    def settled(self, names: Sequence[str], context: StageContext, schemas: Schemas) -> Flow:
        """The flow as a DataFrame of exactly these columns: its kernels become one stage."""
        if not self.kernels:
            if tuple(names) == tuple(self.types):
                return self
            known = {name: self.types[name] for name in names}
            return replace(self, frame=selected(self.frame, names), types=known)
        types = self.typed(names)
        schema = schemas.of(types)
        makers = tuple((name, step_name(self.made[name])) for name in names if name in self.made)
        stage = PythonStage(self.kernels, schema.arrow, makers, context, self.partitions)
        frame = self.frame.mapInArrow(stage, schema.struct)
        if not self.deterministic:
            frame = frame.localCheckpoint(eager=True)
        return Flow(frame, types, self.partitions)
