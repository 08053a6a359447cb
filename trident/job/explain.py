"""The plan as text: a line a step, by stage, with every state's guarantee and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trident.errors import PlanError
from trident.job.compile import Local, Spark, Target, compile_job
from trident.job.job import Job, LookUp
from trident.plan.guarantee import guarantee
from trident.plan.nodes import (
    Node,
    SourceNode,
    StateDeclaration,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
    StaticStreamNode,
)
from trident.plan.overlap import one_at_a_time, one_at_a_time_on_spark
from trident.plan.placement import only_on_spark
from trident.plan.places import calls_of, place_of
from trident.plan.plan import BatchGroup, DRPCQuery, Plan
from trident.plan.stages import PlanStage, combines_first, is_keyed, stages
from trident.states.printable import one_line
from trident.states.values import StateType

_PARTITIONS = 2
"""Of which nothing is shown."""
_CLOCKS = {"dataframe": "Structured Streaming", "spout": "spouts"}


def explain(plan: Plan) -> str:
    """What will run, in the order of groups and queries.

    Steps of one stage run fused, in each partition by itself; tuples move between stages only.

    Parameters
    ----------
    plan : Plan
        The topology.

    Returns
    -------
    str
        Lines without an end of line after the last.
    """
    lines: list[str] = []
    for group in plan.groups:
        lines += _group(plan, group)
    for node in plan.nodes:
        if isinstance(node, StaticStateNode):
            lines += [node.call_text, f"  {state_line(node.state)}"]
            lines += [f"  {text}" for text in _where(node.state)]
    for query in plan.drpc.values():
        lines += _query(plan, query)
    return "\n".join(map(one_line, lines))


def state_line(state: StateDeclaration) -> str:
    """What is known of a state: its factory, how it keeps values and where it is hosted."""
    factory = state.factory
    parts = [
        factory.label,
        f"{factory.kind.value} map" if factory.kind else "kind not known",
        "hosted by the driver" if factory.hosted == "driver" else "hosted by executors",
    ]
    return f'state "{state.name}": {", ".join(parts)}'


def _where(state: StateDeclaration) -> Iterator[str]:
    """Where a state is kept, and what a batch without trouble asks there, as far as is known."""
    if (place := place_of(state.factory)) is not None:
        yield f"kept in {place}"
    if calls := calls_of(state.factory):
        asked = f"{calls}, on the driver" if calls.asks else str(calls)
        yield f"round trips to its store a batch: {asked}"


def _group(plan: Plan, group: BatchGroup) -> Iterator[str]:
    clock = "requests" if group.requests else _CLOCKS[group.clock]
    yield f'group "{group.id}", clock: {clock}'
    if group.requests is not None:
        yield f"  {_together(group)}; always in the driver's process"
        yield from _stages(plan, group)
        return
    if group.clock == "spout":
        yield f"  with a session, {_engine(group)}"
    yield f"  {_overlap(group)}"
    yield f"  a batch without tuples {_when_empty(group)}"
    yield from _stages(plan, group)


def _together(group: BatchGroup) -> str:
    if group.reads_own:
        return "each request is a batch, as it reads a state that it updates"
    return "requests that come together are one batch"


def _engine(group: BatchGroup) -> str:
    reason = only_on_spark(group)
    if reason is None:
        return "small batches run in the driver's process, large ones on Spark"
    return f"every batch runs on Spark: {reason}"


def _overlap(group: BatchGroup) -> str:
    if reason := one_at_a_time(group):
        return f"batches run one at a time: {reason}"
    overlap = "batches overlap where max_pending is given"
    reason = one_at_a_time_on_spark(group)
    if group.clock == "dataframe":
        return f"batches run one at a time: {reason}" if reason else f"{overlap}, and are staged"
    return f"{overlap}; with a session one runs at a time: {reason}" if reason else overlap


def _when_empty(group: BatchGroup) -> str:
    acting = [str(node.id) for node in group.acting_on_nothing]
    if not acting:
        return "changes nothing"
    return f"is run too, for step{'s' * (len(acting) > 1)} {', '.join(acting)}"


def _query(plan: Plan, query: DRPCQuery) -> Iterator[str]:
    yield f'query "{query.function}", answers {query.result.fields or "nothing"}'
    if query.source.engine == "spark":
        yield "  Spark answers it, each request by a job of its own"
    yield from _stages(plan, query)


def _stages(plan: Plan, part: BatchGroup | DRPCQuery) -> Iterator[str]:
    nodes, in_batch = part.nodes, isinstance(part, BatchGroup)
    found, together = stages(nodes), _together_with(part)
    of_node = {node: stage for stage in found for node in stage.nodes}
    for stage in found:
        if stage.exchange:
            parents = sorted({of_node[parent].number for parent in stage.nodes[0].parents})
            numbers = f"stage{'s' * (len(parents) > 1)} {' and '.join(map(str, parents))}"
            yield f"  exchange {stage.exchange}, from {numbers}"
        yield f"  stage {stage.number}, partitions: {stage.partitions or 'default'}"
        for position, node in enumerate(stage.nodes):
            yield _numbered(node, node.call_text + _after(stage, position))
            yield from _notes(plan, node, in_batch)
            if node.id in together:
                yield _note(f"looked up together with step {together[node.id]}")
        for node in nodes:
            if combines_first(node) and of_node[node.parents[0]] is stage:
                yield _numbered(node, f"{node.call_text}, combined in each partition first")


def _together_with(part: BatchGroup | DRPCQuery) -> dict[int, int]:
    """Look-ups that are made at once with the one before, and which that is."""
    try:
        job = _job(part)
    except PlanError:  # a start refuses it, as for want of pyarrow; it is explained all the same
        return {}
    rows = [step.ids for step in job.steps if isinstance(step, LookUp)]
    return {each: before for row in rows for before, each in pairwise(row)}


def _job(part: BatchGroup | DRPCQuery) -> Job:
    """What runs, as far as that doesn't hang on a session or on the size of a batch."""
    if isinstance(part, DRPCQuery):
        asked = Spark(_PARTITIONS, requests=True, typed=False)
        target: Target = asked if part.source.engine == "spark" else Local()
        return compile_job(part.nodes, target, part.result)
    spark = part.clock == "dataframe" or only_on_spark(part) is not None
    return compile_job(part.nodes, Spark(_PARTITIONS, typed=False) if spark else Local())


def _numbered(node: Node, text: str) -> str:
    return f"  {node.id:>4}  {text}"


def _after(stage: PlanStage, position: int) -> str:
    """Which step comes before, where it isn't the line above."""
    if position == 0 or stage.nodes[position].parents == (stage.nodes[position - 1],):
        return ""
    return f", after {' and '.join(str(parent.id) for parent in stage.nodes[position].parents)}"


def _notes(plan: Plan, node: Node, in_batch: bool) -> Iterator[str]:
    """What else there is to know about a step, below its line."""
    if isinstance(node, SourceNode):
        yield _note(f"{node.kind} stream of {node.fields}")
    if isinstance(node, StaticStreamNode):
        yield _note(f"static stream of {node.fields}")
    if isinstance(node, StateQueryNode):
        yield _note(_reads(node, in_batch))
    if isinstance(node, StateUpdateNode):
        yield _note(state_line(node.state))
        yield from map(_note, _where(node.state))
        if reason := node.state.factory.cache_left_out:
            yield _note(f"no cache, though cache_size is given: {reason}")
        found = guarantee(plan, node)
        yield _note(f"{found.level}: {found.why}")
        if found.advice:
            yield _note(found.advice)
        staged = guarantee(plan, node, max_pending=2)
        if staged.level != found.level:
            yield _note(f"where max_pending is given, {staged.level}: {staged.why}")
        if not is_keyed(node):
            yield _note("one partition, as no partitionBy() or groupBy() stands before it")


def _reads(node: StateQueryNode, in_batch: bool) -> str:
    factory = node.state.state.factory
    if isinstance(node.state, StaticStateNode):
        return "reads what is there"
    opaque = factory.kind is StateType.OPAQUE
    if not in_batch:
        return "reads committed batches only" if opaque else "may read a batch before it commits"
    when = "as of the batch before" if opaque else "before this batch's update"
    driver = ", looked up on the driver: a job of its own" if factory.hosted == "driver" else ""
    return f"reads {when}{driver}"


def _note(text: str) -> str:
    return f"        {text}"
