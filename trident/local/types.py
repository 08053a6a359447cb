"""Whether what a step makes is of its declared types, as Spark would insist on."""

from __future__ import annotations

from operator import itemgetter

from trident.local.batch import Batch, Rows, blame
from trident.local.steps import Step
from trident.plan.describe import describe
from trident.plan.nodes import (
    AggregateNode,
    EachNode,
    FlatMapNode,
    MapNode,
    Node,
    PartitionAggregateNode,
    SourceNode,
)
from trident.value_types import PYTHON_TYPES, conformed


def conforming(node: Node) -> Step | None:
    """What checks the fields that a step makes; None where no type of them is known."""
    types, made_by = node.fields.types, describe(node)
    columns = [
        (node.fields.index(name), name, kind)
        for name in _made(node)
        if (kind := types[name]) is not None and kind in PYTHON_TYPES
    ]
    if not columns:
        return None

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        try:
            for at, name, kind in columns:
                values = list(map(itemgetter(at), rows))
                right = conformed(made_by, name, kind, values)
                if right is not values:
                    pairs = zip(rows, right, strict=True)
                    rows = [(*row[:at], value, *row[at + 1 :]) for row, value in pairs]
        except Exception as error:
            blame(error, node, batch, partition)
        return rows

    return run


def _made(node: Node) -> tuple[str, ...]:
    match node:
        case SourceNode() | MapNode() | FlatMapNode():
            return node.fields.names
        case EachNode() | PartitionAggregateNode() | AggregateNode():
            return node.outputs.names
        case _:
            return ()
