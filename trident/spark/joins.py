"""Joins, which Spark runs itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trident.kernels.join_kernel import JoinKernel
from trident.spark.common_types import Convert
from trident.spark.schemas import quoted, selected


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
    return quoted(f"__trident_{place}_{field}")


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
        return selected(frame, ())
    columns = []
    for name, [(place, field), *others] in kernel.columns.items():
        # What is taken from several streams is the key, which comes out once.
        taken = keys[kernel.keys[place].index(field)] if others else _name(place, field)
        columns.append(F.col(taken).alias(name))
    return frame.select(*columns)
