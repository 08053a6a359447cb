"""Queries of states that the driver asks, within a job whose tuples are in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from trident.kernels.arrow_block import block_of_table
from trident.kernels.build import query_row
from trident.kernels.query_row import QueryRow
from trident.kernels.task import Task
from trident.plan.field_type import field_type
from trident.plan.nodes import StateQueryNode
from trident.spark.compile import Compiler
from trident.spark.flow import Flow
from trident.spark.local_frame import local_frame
from trident.spark.schemas import quoted, selected
from trident.tuples.block import Block


def looked_up(
    compiler: Compiler,
    nodes: Sequence[StateQueryNode],
    task: Task,
    ask: Callable[[QueryRow, Block], Block],
) -> Flow:
    """Ask states for the distinct inputs of some steps, in this process, and join the answers.

    Parameters
    ----------
    compiler : Compiler
        Makes what leads to the steps; that is run, by a job of its own.
    nodes : sequence of StateQueryNode
        The steps, in a row, or a single one.
    task : Task
        What errors name.
    ask : callable
        From the steps' kernels and the inputs to the inputs with what the states answer; the
        operations are prepared.
    """
    flow, last = compiler.twice(nodes[0].parent), nodes[-1]
    inputs = tuple(dict.fromkeys(name for node in nodes for name in node.inputs))
    makers = {name: node for node in nodes for name in node.outputs}
    functions = [node.function for node in nodes]
    row = query_row(nodes, functions, dict.fromkeys(nodes, (*inputs, *makers)))
    if inputs:
        asked = block_of_table(selected(flow.frame, inputs).distinct().toArrow())
    else:
        asked = Block({}, 1)
    made = ask(row, asked)
    needed = compiler.group.needed[last]
    keys = {name: f"__trident_key{index}" for index, name in enumerate(inputs)}
    outputs = [name for name in makers if name in needed]
    types = {keys[name]: kind for name, kind in flow.typed(inputs).items()}
    types |= {name: field_type(makers[name], name) for name in outputs}
    renamed = made.renamed({**keys, **dict(zip(outputs, outputs, strict=True))})
    schema = compiler.schemas.of(types)
    step = row.queries[-1].step
    found = local_frame(flow.frame.sparkSession, schema, renamed, step, task).coalesce(1)
    condition = F.lit(True)
    for name, key in keys.items():
        condition &= flow.frame[quoted(name)].eqNullSafe(found[key])
    joined = flow.frame.join(found, condition, "inner")
    kinds = {name: flow.types.get(name, types.get(name)) for name in needed}
    return replace(flow, frame=selected(joined, needed), types=kinds)
