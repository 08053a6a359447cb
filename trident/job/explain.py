"""The plan as text: a line a step, by stage, with every state's guarantee and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trident.backends.rows import Rows
from trident.job.compile import Local, draft_job
from trident.job.job import LookUp, Stage, Update
from trident.job.shown import ShownJob, shown_job
from trident.plan.guarantee import guarantee
from trident.plan.nodes import Node, StateDeclaration, StateNode
from trident.plan.overlap import one_at_a_time, one_at_a_time_on_spark, only_on_spark
from trident.plan.places import calls_of, kept_as, place_of
from trident.plan.plan import BatchGroup, DRPCQuery, Plan
from trident.states.printable import one_line
from trident.states.values import StateType

_CLOCKS = {"dataframe": "Structured Streaming", "spout": "spouts"}


def explain(plan: Plan, *, on_spark: bool = True) -> str:
    """The jobs that will run, in the order of groups and queries.

    The steps of one stage run one after the other within each partition; tuples move only between
    stages. For a group that may run in this process or on Spark, the stages on Spark are listed,
    and those in this process are counted. A job that can't run is listed with the reason.

    With `on_spark` False, no session may run it.
    """
    lines: list[str] = []
    for group in plan.groups:
        lines += _group(plan, group, on_spark)
    for node in plan.states:
        if node.updates is None:
            lines += [node.call_text, f"  {state_line(node.state)}"]
            lines += [f"  {text}" for text in _place_lines(node.state)]
    for query in plan.drpc.values():
        lines += _query(plan, query, on_spark)
    return "\n".join(map(one_line, lines))


def state_line(state: StateDeclaration) -> str:
    """What is known of a state: its factory, how it keeps values and where it is hosted."""
    factory = state.factory
    parts = [
        factory.label,
        kept_as(factory),
        "hosted by the driver" if factory.hosted == "driver" else "hosted by executors",
    ]
    return f'state "{state.name}": {", ".join(parts)}'


def _place_lines(state: StateDeclaration) -> Iterator[str]:
    """The place of a state, and the calls of a batch without failures, as far as is known."""
    if (place := place_of(state.factory)) is not None:
        yield f"kept in {place}"
    if isinstance(state.factory, Rows):
        yield "the rows of a batch are visible together, after its commit"
    if calls := calls_of(state.factory):
        asked = f"{calls}, on the driver" if calls.asks else str(calls)
        yield f"round trips to its store a batch: {asked}"


def _group(plan: Plan, group: BatchGroup, on_spark: bool) -> Iterator[str]:
    clock = "requests" if group.requests else _CLOCKS[group.clock]
    shown = shown_job(group, on_spark=on_spark)
    yield f'group "{group.id}", clock: {clock}'
    if group.requests is not None:
        yield f"  {_together(group)}; always in the driver's process"
    else:
        yield from _engine(group, shown)
        yield f"  {_overlap(group)}"
        yield f"  a batch without tuples {_when_empty(group)}"
    yield from _stages(plan, shown, in_batch=True)


def _together(group: BatchGroup) -> str:
    if group.reads_own:
        return "each request is a batch, as it reads a state that it updates"
    return "requests that come together are one batch"


def _engine(group: BatchGroup, shown: ShownJob) -> Iterator[str]:
    if group.clock == "dataframe":
        return
    if reason := only_on_spark(group):
        yield f"  every batch runs on Spark: {reason}"
    elif shown.refused_by_spark is not None:
        yield f"  with a session start refuses it: {shown.refused_by_spark}"
    elif isinstance(shown.target, Local):
        yield "  batches run in the driver's process"
    else:
        yield "  with a session, batches run in the driver's process or on Spark, by size"
        yield f"  in the driver's process {_here(group)}; these are the stages on Spark"


def _here(group: BatchGroup) -> str:
    """The stages in this process, counted."""
    job, _ = draft_job(group, Local())
    counts = {stage.partitions or 1 for stage in job.stages}
    stages, most = len(job.stages), max(counts)
    partitions = f"{'up to ' * (len(counts) > 1)}{most} partition{'s' * (most > 1)}"
    return f"it is {stages} stage{'s' * (stages > 1)} of {partitions}"


def _overlap(group: BatchGroup) -> str:
    if reason := one_at_a_time(group):
        return f"batches run one at a time: {reason}"
    overlap = "batches overlap if max_pending is given"
    reason = one_at_a_time_on_spark(group)
    if group.clock == "dataframe":
        return f"batches run one at a time: {reason}" if reason else f"{overlap}, and are staged"
    return f"{overlap}; with a session one runs at a time: {reason}" if reason else overlap


def _when_empty(group: BatchGroup) -> str:
    acting = [str(node.id) for node in group.acting_on_nothing]
    if not acting:
        return "changes nothing"
    return f"is run too, for step{'s' * (len(acting) > 1)} {', '.join(acting)}"


def _query(plan: Plan, query: DRPCQuery, on_spark: bool) -> Iterator[str]:
    yield f'query "{query.function}", answers {query.result.fields or "nothing"}'
    if query.source.engine == "spark":
        yield "  Spark answers it, each request by a job of its own"
    yield from _stages(plan, shown_job(query, on_spark=on_spark), in_batch=False)


def _stages(plan: Plan, shown: ShownJob, *, in_batch: bool) -> Iterator[str]:
    if shown.refused is not None:
        yield f"  start refuses it: {shown.refused}"
    stages = shown.job.stages
    for stage in stages:
        if stage.inputs:
            numbers = [str(number + 1) for number in sorted(set(stage.inputs))]
            before = f"stage{'s' * (len(numbers) > 1)} {_listed(numbers)}"
            yield f"  exchange {stage.exchange.text}, from {before}"
        yield f"  stage {stage.id + 1}, partitions: {shown.partitions(stage) or 'default'}"
        nodes = shown.nodes[stage.id]
        for above, node in zip((None, *nodes), nodes, strict=False):
            yield _numbered(node, node.call_text + _after(node, above))
            yield from _notes(plan, shown, node, in_batch)
        for later in stages:
            if stage.id in later.inputs and later.combines_first:
                node = _first(shown, later)
                yield _numbered(node, f"{node.call_text}, combined in each partition first")


def _first(shown: ShownJob, stage: Stage) -> Node:
    """The first step of the plan in a stage."""
    [id] = stage.steps[0].ids
    return next(node for node in shown.nodes[stage.id] if node.id == id)


def _numbered(node: Node, text: str) -> str:
    return f"  {node.id:>4}  {text}"


def _after(node: Node, above: Node | None) -> str:
    """The step before, if it isn't the line above."""
    if above is None or node.parents == (above,):
        return ""
    return f", after {_listed([str(parent.id) for parent in node.parents])}"


def _listed(texts: Sequence[str]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``."""
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _notes(plan: Plan, shown: ShownJob, node: Node, in_batch: bool) -> Iterator[str]:
    """The notes on a step, below its line."""
    step = shown.step(node)
    if node.stream_text:
        yield _note(node.stream_text)
    if isinstance(step, LookUp) and node.asks is not None:
        yield _note(_reads(node.asks, step, in_batch))
        if (place := step.ids.index(node.id)) > 0:
            yield _note(f"looked up together with step {step.ids[place - 1]}")
    if node.updates is not None:
        yield from map(_note, _updates(plan, node.updates))
    if isinstance(step, Update) and not step.keyed and not step.on_driver:
        yield _note("one partition, as no partitionBy() or groupBy() stands before it")


def _updates(plan: Plan, state: StateDeclaration) -> Iterator[str]:
    """The notes on a state that is updated."""
    yield state_line(state)
    yield from _place_lines(state)
    if reason := state.factory.cache_left_out:
        yield f"no cache, though cache_size is given: {reason}"
    update = plan.update_of(state)
    assert update is not None
    found = guarantee(plan, update)
    yield f"{found.level}: {found.why}"
    if found.advice:
        yield found.advice
    staged = guarantee(plan, update, max_pending=2)
    if staged.level != found.level:
        yield f"if max_pending is given, {staged.level}: {staged.why}"


def _reads(state: StateNode, step: LookUp, in_batch: bool) -> str:
    if state.updates is None:
        return "reads its current entries"
    opaque = state.state.factory.kind is StateType.OPAQUE
    if not in_batch:
        return "reads committed batches only" if opaque else "may read a batch before it commits"
    when = "as of the batch before" if opaque else "before this batch's update"
    driver = ", looked up on the driver: a job of its own" if step.on_driver else ""
    return f"reads {when}{driver}"


def _note(text: str) -> str:
    return f"        {text}"
