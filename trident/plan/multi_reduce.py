"""Makes nodes of ``multiReduce``: the tuples of all streams meet in one, which is aggregated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trident.errors import OperationTypeError
from trident.operations.interfaces import GroupedMultiReducer, MultiReducer
from trident.operations.multi_reduced import GroupedMultiReduced, Laid, MultiReduced
from trident.plan.arguments import as_instance
from trident.plan.builder import Position
from trident.plan.nodes import (
    MapNode,
    MergeNode,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    ProjectNode,
)
from trident.plan.step_checks import (
    check_join_keys,
    check_selection,
    check_types_agree,
)
from trident.tuples.fields import Fields
from trident.tuples.value_types import common_type

_CALL = "multiReduce"


def multi_reduce(
    streams: Sequence[Position], seen: Sequence[Fields], reducer: object, outputs: Fields
) -> Node:
    """``multiReduce(streams, reducer, outputs)``; the reducer has `seen` these fields of each."""
    groups, builder = [stream.group for stream in streams], streams[0].builder
    grouped = [group for group in groups if group is not None]
    if grouped and None in groups:
        advice = "Write groupBy() behind each of them, or behind none."
        raise OperationTypeError(f"{_CALL}: some streams have groups, some not", "", (), advice)
    known = as_instance(_CALL, reducer, GroupedMultiReducer if grouped else MultiReducer)
    inputs = [
        check_selection(_CALL, own, stream.fields)
        for stream, own in zip(streams, seen, strict=True)
    ]
    keys = [stream.fields.select(stream.group or ()) for stream in streams]
    if grouped:
        check_join_keys(_CALL, grouped)
        check_types_agree(_CALL, keys)
    with builder.together():
        laid = [_lay_out(stream, place, keys, inputs) for place, stream in enumerate(streams)]
        merged = builder.add(MergeNode, parents=tuple(laid))
        group = Fields(*merged.fields.names[1 : 1 + len(keys[0])]) if grouped else None
        how = "partitionBy" if grouped else "batchGlobal"
        moved = builder.add(PartitionNode, parents=(merged,), how=how, by=group)
        kind = GroupedMultiReduced if grouped else MultiReduced
        made = builder.add(
            PartitionAggregateNode,
            parents=(moved,),
            group=group,
            inputs=Fields(*merged.fields.names),
            aggregator=kind(known, keys[0], inputs),
            outputs=outputs,
        )
        return builder.add(ProjectNode, parents=(made,), keep=Fields(*outputs.names))


def _lay_out(
    stream: Position, number: int, keys: Sequence[Fields], inputs: Sequence[Fields]
) -> Node:
    """Lay the tuples of a stream beside nulls in place of the others'."""
    key, own = keys[number], inputs[number]
    seen = Fields(*dict.fromkeys((*key, *own)))
    project = stream.add(ProjectNode, keep=seen)
    widths = [len(fields) for fields in inputs]
    return Position(stream.builder, project).add(
        MapNode,
        inputs=project.fields,
        function=Laid(
            number,
            [seen.index(name) for name in key],
            [seen.index(name) for name in own],
            before=sum(widths[:number]),
            after=sum(widths[number + 1 :]),
            count=len(inputs),
        ),
        outputs=Fields.typed(_places(keys, inputs)),
    )


def _places(keys: Sequence[Fields], inputs: Sequence[Fields]) -> Iterator[tuple[str, Any]]:
    """Names and types of the stream in which the tuples of all streams meet."""
    yield "stream", int
    kinds = zip(*(key.types.values() for key in keys), strict=True)
    for name, of_streams in zip(keys[0], kinds, strict=True):
        yield f"group_{name}", common_type(of_streams)
    for number, fields in enumerate(inputs, 1):
        for name, kind in fields.types.items():
            yield f"stream{number}_{name}", kind
