"""A stream while a batch is run: a DataFrame, and the kernels that follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trident.kernels.kernel import Kernel
from trident.kernels.on_error import keeps_letters
from trident.kernels.task import StepName
from trident.operations.annotations import known_type
from trident.operations.dead_letters import LETTER
from trident.spark.access import checkpoint_frame
from trident.spark.packed import STRUCT, PackedRowsKernel, PackedStage
from trident.spark.schemas import Schema, Schemas, select_columns
from trident.spark.stage import LETTER_COLUMNS, PythonStage, StageContext
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class InputFrame:
    """The tuples with which a batch begins: the output of `kernels`, if any, over a frame.

    A frame of empty files has 0 partitions.
    """

    frame: DataFrame
    partitions: int
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Flow:
    """A stream in the middle of a batch: a frame, and the `kernels` that are to run over it.

    `made` has the step and the type of each column that these make. `letters` has the dead letters
    of kernels that have run and, on Spark Connect, a row with their counts.
    """

    frame: DataFrame
    types: Mapping[str, str | None]
    partitions: int
    kernels: tuple[Kernel, ...] = ()
    made: Mapping[str, tuple[StepName, str | None]] = field(default_factory=dict)
    deterministic: bool = True
    kept: bool = False
    letters: DataFrame | None = None

    def then(
        self, kernels: Sequence[Kernel], name: StepName, makes: Fields, *, deterministic: bool
    ) -> Flow:
        """Append the kernels of one more step, which makes some fields."""
        return replace(
            self,
            kernels=(*self.kernels, *kernels),
            made={**self.made, **{field: (name, kind) for field, kind in makes.types.items()}},
            deterministic=self.deterministic and deterministic,
            kept=False,
        )

    def with_frame(self, frame: DataFrame, partitions: int) -> Flow:
        """Return the same columns in other partitions."""
        return replace(self, frame=frame, partitions=partitions, kept=False)

    def types_of(self, names: Sequence[str]) -> dict[str, str]:
        """Return the types of columns."""
        return {name: self._type(name) for name in names}

    def _type(self, name: str) -> str:
        known = self.made[name][1] if name in self.made else self.types[name]
        if known is not None:
            return known
        sparks = self.frame.schema[name].dataType.simpleString()
        return known_type(sparks) or sparks  # which has no quotes about a struct's names

    def has_reports(self, context: StageContext) -> bool:
        """Whether its kernels make rows that report bad tuples."""
        return keeps_letters(self.kernels) or context.counts_in_rows(self.kernels)

    def settle(self, names: Sequence[str], context: StageContext, schemas: Schemas) -> Flow:
        """Return a flow of exactly these columns: one ``mapInArrow`` runs its kernels."""
        if not self.kernels:
            if tuple(names) == tuple(self.types):
                return self
            known = {name: self.types[name] for name in names}
            return replace(self, frame=select_columns(self.frame, names), types=known)
        types, telling = self.types_of(names), self.has_reports(context)
        schema = schemas.of({**types, **LETTER_COLUMNS} if telling else types)
        frame = self.frame.mapInArrow(
            self._stage(PythonStage, names, schema, context), schema.struct
        )
        if telling or not self.deterministic:
            frame = checkpoint_frame(frame)
        stays = self.kept or telling or not self.deterministic
        if not telling:
            return Flow(frame, types, self.partitions, kept=stays)
        is_letter = F.col([*LETTER_COLUMNS][-1]).isNotNull()
        main = select_columns(frame.where(~is_letter), names)
        letters = select_columns(frame.where(is_letter), [*LETTER_COLUMNS]).toDF(*LETTER.names)
        return Flow(main, types, self.partitions, kept=stays, letters=letters)

    def settle_packed(self, names: Sequence[str], context: StageContext, schemas: Schemas) -> Flow:
        """Do the same for what Python reads once, packed.

        There have to be kernels, and no :meth:`has_reports`.
        """
        types = self.types_of(names)
        schema = schemas.of(types)
        frame = self.frame.mapInArrow(self._stage(PackedStage, names, schema, context), STRUCT)
        kernel = PackedRowsKernel(self.kernels[-1].step, None, schema.arrow)
        return Flow(
            frame if self.deterministic else checkpoint_frame(frame),
            types,
            self.partitions,
            (kernel,),
        )

    def _stage(
        self, kind: type[PythonStage], names: Sequence[str], schema: Schema, context: StageContext
    ) -> PythonStage:
        """Return the stage that runs the kernels."""
        makers = tuple((name, self.made[name][0]) for name in names if name in self.made)
        return kind(self.kernels, schema.arrow, makers, context, self.partitions)
