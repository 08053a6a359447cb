"""Columns of the type of a field in which values of several types meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from trident.operations.annotations import known_type
from trident.spark.flow import Flow
from trident.spark.schemas import ddl_text
from trident.tuples.field_types import parts
from trident.tuples.value_types import common_type, value_sort

Convert = Callable[[Column], Column]
"""Makes a column one of another type."""


def conversions(flows: Sequence[Flow], names: Sequence[Sequence[str]]) -> list[dict[str, Convert]]:
    """For each stream what gives its columns the types they meet in; Spark takes structs by
    position."""
    found: list[dict[str, Convert]] = [{} for _ in flows]
    for columns in zip(*names, strict=True):
        known = {flow.types[name] for flow, name in zip(flows, columns, strict=True)}
        if len(known) == 1 and None not in known:
            continue
        met = zip(flows, columns, strict=True)
        kinds = tuple(flow.typed((name,))[name] for flow, name in met)
        common = _common(kinds)
        for own, name, kind in zip(found, columns, kinds, strict=True):
            if common not in (None, kind):
                own[name] = partial(_converted, found=kind, wanted=common)
    return found


def _common(kinds: tuple[str, ...]) -> str | None:
    """The type; None where there are types that only Spark knows, and it has rules of its own."""
    if any(known_type(kind) != kind for kind in kinds) or len(set(map(value_sort, kinds))) > 1:
        return None
    return common_type(kinds)


def _converted(column: Column, found: str, wanted: str) -> Column:
    """The column with another type of the same sort; structs by the names of their fields."""
    if found == wanted:
        return column
    head, within, names = parts(wanted)
    before = parts(found)
    if head == "struct":
        kinds: Mapping[str, str] = dict(zip(before.names, before.kinds, strict=True))
        members = [
            _converted(column.getField(name), kinds[name], kind).alias(name)
            for name, kind in zip(names, within, strict=True)
        ]
        return F.when(column.isNotNull(), F.struct(*members))
    if head == "array":
        return F.transform(column, lambda one: _converted(one, before.kinds[0], within[0]))
    if head == "map":
        keys = F.transform_keys(column, lambda key, _: _converted(key, before.kinds[0], within[0]))
        return F.transform_values(
            keys, lambda _, value: _converted(value, before.kinds[1], within[1])
        )
    return column.cast(ddl_text(wanted))
