"""The kernel of a function of record batches; the local engine uses it too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from trident.errors import EmittedValueError, described
from trident.kernels.arrow_block import arrow_column
from trident.kernels.kernel import BlockKernel
from trident.kernels.task import Task
from trident.operations.interfaces import operation_name
from trident.operations.vectorised import Vectorised
from trident.tuples.block import Block
from trident.tuples.fields import Fields

_SIMPLE: Mapping[str, pa.DataType] = {
    **{"long": pa.int64(), "int": pa.int32(), "short": pa.int16(), "byte": pa.int8()},
    **{"double": pa.float64(), "float": pa.float32(), "boolean": pa.bool_()},
    **{"string": pa.string(), "binary": pa.binary(), "date": pa.date32()},
    **{"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")},
}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def arrow_type(kind: str | None) -> pa.DataType | None:
    """The Arrow type of a field; None where Arrow finds it out by itself.

    Examples
    --------
    >>> arrow_type("long"), arrow_type("decimal(9,2)"), arrow_type("array<long>")
    (DataType(int64), Decimal128Type(decimal128(9, 2)), None)
    """
    if kind is None:
        return None
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2] or 0))
    return pa.string() if kind.startswith(("char", "varchar")) else _SIMPLE.get(kind)


@dataclass(frozen=True)
class ArrowKernel(BlockKernel):
    """Hands whole blocks to a function, as record batches."""

    operation: Vectorised
    inputs: Fields
    outputs: Fields

    def apply(self, block: Block, task: Task) -> Block:
        with task.at(self.step):
            given = record_batch(block, self.inputs)
            made = self.operation.function(given)
            columns = self._check_columns(made)
        return Block({}, made.num_rows, columns)

    def _check_columns(self, made: object) -> dict[str, pa.Array]:
        """The columns by field, each of the type that is declared."""
        name, width = operation_name(self.operation), len(self.outputs)
        if not isinstance(made, pa.RecordBatch):
            problem = f"returned {described(made)}, expected a pyarrow.RecordBatch"
            raise EmittedValueError(name, problem)
        if made.num_columns != width:
            problem = f"returned {made.num_columns} columns for {width} output fields"
            raise EmittedValueError(name, problem)
        columns = {}
        for column, (field, kind) in zip(made.columns, self.outputs.types.items(), strict=True):
            wanted = arrow_type(kind)
            if wanted is not None and column.type != wanted:
                column = _cast(name, field, str(kind), column, wanted)
            columns[field] = column
        return columns


def record_batch(block: Block, fields: Fields) -> pa.RecordBatch:
    """Fields of a block as Arrow, of the types that are declared."""
    columns = [_column(block, name, kind) for name, kind in fields.types.items()]
    return pa.RecordBatch.from_arrays(columns, list(fields.names))


def _column(block: Block, name: str, kind: str | None) -> pa.Array:
    wanted = arrow_type(kind)
    if wanted is not None:
        return arrow_column(block, name, wanted)
    column = block.arrow(name)
    return pa.array(block.values(name)) if column is None else column


def _cast(operation: str, field: str, kind: str, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column as the declared type: whole numbers of another size, or as floats; nothing that
    would lose anything."""
    number = pa.types.is_integer(column.type)
    alike = (
        pa.types.is_null(column.type)
        or (number and (pa.types.is_integer(wanted) or pa.types.is_floating(wanted)))
        or (pa.types.is_floating(column.type) and pa.types.is_floating(wanted))
        or (pa.types.is_decimal(column.type) and pa.types.is_decimal(wanted))
        or _sort(column.type) == _sort(wanted)
    )
    try:
        if alike:
            return column.cast(wanted)
    except pa.ArrowInvalid:
        pass
    problem = (
        f"returned {column.type} for the field {field!r}, which is declared {kind}: "
        "cast it, or declare another type"
    )
    raise EmittedValueError(operation, problem)


def _sort(kind: pa.DataType) -> object:
    """What text and bytes of any width, and moments of any unit and zone, are compared as."""
    large = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    if pa.types.is_timestamp(kind):
        return "moment" if kind.tz else "time of a day"
    return large.get(kind, kind)
