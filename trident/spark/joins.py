"""Joins, which Spark runs itself; and columns of the type of a field in which values meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trident.kernels.join_kernel import JoinKernel
from trident.operations.annotations import known_type
from trident.spark.flow import Flow
from trident.spark.schemas import ddl_text, quote, select_columns
from trident.tuples.field_types import parts
from trident.tuples.value_types import common_type, value_sort

Convert = Callable[[Column], Column]
"""Makes a column one of another type."""


def native_join(
    frames: Sequence[DataFrame],
    converted: Sequence[Mapping[str, Convert]],
    kernel: JoinKernel,
) -> DataFrame:
    """Join streams one after the other, so that keys stay of all that have to be there."""
    width = len(kernel.keys[0])
    keys = [f"__trident_key{index}" for index in range(width)]
    sides = [_side(frame, place) for place, frame in enumerate(frames)]
    made = sides[0].withColumns(dict(zip(keys, _keys(0, kernel, converted), strict=True)))
    required = kernel.required[0]
    for place, side in enumerate(sides[1:], 1):
        theirs = _keys(place, kernel, converted)
        matches = [F.col(key) == column for key, column in zip(keys, theirs, strict=True)]
        how = _HOW[required, kernel.required[place]]
        made = made.join(side, reduce(and_, matches), how)
        if how in ("right", "full"):
            # A key with a null in it matches nothing, so that only one of the two has values.
            both = zip(keys, theirs, strict=True)
            made = made.withColumns({key: F.coalesce(F.col(key), column) for key, column in both})
        required = required or kernel.required[place]
    return _output(made, kernel, keys)


_HOW = {
    (True, True): "inner",
    (True, False): "left",
    (False, True): "right",
    (False, False): "full",
}
"""How a stream is joined, by whether one before it has to be there, and whether it has to."""


def _name(place: int, field: str) -> str:
    return quote(f"__trident_{place}_{field}")


def _keys(
    place: int, kernel: JoinKernel, converted: Sequence[Mapping[str, Convert]]
) -> list[Column]:
    """The key of a stream."""
    columns = {name: F.col(_name(place, name)) for name in kernel.keys[place]}
    made = {name: to(columns[name]) for name, to in converted[place].items()}
    return list({**columns, **made}.values())


def _side(frame: DataFrame, place: int) -> DataFrame:
    """A stream whose fields have names that no other has."""
    return frame.toDF(*(f"__trident_{place}_{name}" for name in frame.columns))


def _output(frame: DataFrame, kernel: JoinKernel, keys: Sequence[str]) -> DataFrame:
    if not kernel.columns:
        return select_columns(frame, ())
    columns = []
    for name, [(place, field), *others] in kernel.columns.items():
        # What is taken from several streams is the key, which comes out once.
        taken = keys[kernel.keys[place].index(field)] if others else _name(place, field)
        columns.append(F.col(taken).alias(name))
    return frame.select(*columns)


def find_conversions(
    flows: Sequence[Flow], names: Sequence[Sequence[str]]
) -> list[dict[str, Convert]]:
    """For each stream what gives its columns the types they meet in; Spark takes structs by
    position."""
    found: list[dict[str, Convert]] = [{} for _ in flows]
    for columns in zip(*names, strict=True):
        known = {flow.types[name] for flow, name in zip(flows, columns, strict=True)}
        if len(known) == 1 and None not in known:
            continue
        met = zip(flows, columns, strict=True)
        kinds = tuple(flow.types_of((name,))[name] for flow, name in met)
        common = _common(kinds)
        for own, name, kind in zip(found, columns, kinds, strict=True):
            if common not in (None, kind):
                own[name] = partial(_convert, found=kind, wanted=common)
    return found


def _common(kinds: tuple[str, ...]) -> str | None:
    """The type; None where there are types that only Spark knows, and it has rules of its own."""
    if any(known_type(kind) != kind for kind in kinds) or len(set(map(value_sort, kinds))) > 1:
        return None
    return common_type(kinds)


def _convert(column: Column, found: str, wanted: str) -> Column:
    """The column with another type of the same sort; structs by the names of their fields."""
    if found == wanted:
        return column
    head, within, names = parts(wanted)
    before = parts(found)
    if head == "struct":
        kinds: Mapping[str, str] = dict(zip(before.names, before.kinds, strict=True))
        members = [
            _convert(column.getField(name), kinds[name], kind).alias(name)
            for name, kind in zip(names, within, strict=True)
        ]
        return F.when(column.isNotNull(), F.struct(*members))
    if head == "array":
        return F.transform(column, lambda one: _convert(one, before.kinds[0], within[0]))
    if head == "map":
        keys = F.transform_keys(column, lambda key, _: _convert(key, before.kinds[0], within[0]))
        return F.transform_values(
            keys, lambda _, value: _convert(value, before.kinds[1], within[1])
        )
    return column.cast(ddl_text(wanted))
