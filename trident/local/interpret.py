"""A component of a plan, compiled once into closures over lists of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trident.errors import PlanError
from trident.local.aggregates import each_partition, gathered, whole_batch
from trident.local.batch import Batch, Partitions, Rows
from trident.local.conforming import conforming_step
from trident.local.keys import partition_by
from trident.local.operations import Operations
from trident.local.parallelism import partition_counts
from trident.local.steps import Step, step
from trident.local.updates import update_step
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    MergeNode,
    Node,
    PartitionNode,
    SourceNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
    StepNode,
)
from trident.plan.plan import ancestors

Stage = Callable[[Sequence[Partitions], Batch], Partitions]
"""From what the parents made to what a step makes."""

_EXCHANGING = (SourceNode, DRPCNode, PartitionNode, AggregateNode, MergeNode, StateUpdateNode)


class Program:
    """What a component does with a batch or a query, in this process.

    Consecutive partition-local steps are one stage. Partitions run one after the other, in the
    thread that calls :meth:`run`; several threads may run one program where the operations in it
    allow that. Each partition has an object of each operation, prepared once; see `Operations`.

    Parameters
    ----------
    nodes : sequence of Node
        All steps, in order of creation.
    result : Node or None
        The step whose tuples :meth:`run` returns.
    conf : mapping
        What operations are prepared with.

    Raises
    ------
    PlanError
        For a step that runs on Spark only.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        result: Node | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self._counts = partition_counts(nodes)
        self._operations = Operations()
        steps = [node for node in _in_order(nodes) if not isinstance(node, StaticStateNode)]
        consumers: dict[Node, list[Node]] = {node: [] for node in steps}
        for node in steps:
            for parent in node.parents:
                consumers[parent].append(node)

        slots: dict[Node, int] = {}
        stages: list[tuple[int, tuple[int, ...], Stage]] = []
        for chain in _chains(steps, consumers, result):
            slot = slots[chain[-1]] = len(slots)
            stage = self._stage(chain, consumers)
            stages.append((slot, tuple(slots[parent] for parent in chain[0].parents), stage))
        self._stages = tuple(_with_releases(stages, slots[result] if result else None))
        self._slots = len(slots)
        self._result = slots[result] if result else None
        self._conf = conf or {}

    def run(self, batch: Batch) -> Rows:
        """Run one batch or query through all steps.

        Returns
        -------
        list of tuple
            The tuples of the result, partition after partition; empty without a result.

        Raises
        ------
        OperationError
            What an operation raised, with the step, the batch and the tuple.
        FailedException
            The attempt failed.
        """
        made: list[Any] = [None] * self._slots
        for slot, parents, stage, releases in self._stages:
            made[slot] = stage([made[parent] for parent in parents], batch)
            for index in releases:
                made[index] = None
        if self._result is None:
            return []
        return gathered(made[self._result])[0] if made[self._result] else []

    def prepare(self) -> None:
        """Prepare all operations, once; before the first run."""
        self._operations.prepare(self._conf)

    def close(self) -> None:
        """Clean all operations up, once; after the last run."""
        self._operations.cleanup()

    def _stage(self, chain: list[Node], consumers: Mapping[Node, list[Node]]) -> Stage:
        node = chain[0]
        count = self._counts[node]
        match node:
            case SourceNode() | DRPCNode():
                source = node
                return _checked(node, lambda _, batch: _dealt(batch.sources.get(source, []), count))
            case MergeNode():
                return lambda parents, _: _merged(parents, count)
            case PartitionNode():
                return _exchange(node, count)
            case AggregateNode():
                before = self._counts[node.parent]
                aggregate = whole_batch(node, self._operations, before, count)
                return _checked(node, lambda parents, batch: aggregate(parents[0], batch))
            case StateUpdateNode():
                updaters, new_values = self._operations.of(node, count), bool(consumers[node])
                steps = [update_step(node, each, new_values=new_values) for each in updaters]
                return _checked(node, _update(steps))
            case StepNode():
                return _fused(self._steps(chain, count))
            case _:
                what = f"{node.origin.call} at {node.origin}: the local engine can't run a"
                advice = "Tell it how, in trident/local/interpret.py."
                raise PlanError(what, type(node).__name__, (), advice)

    def _steps(self, chain: list[Node], count: int) -> list[list[Step]]:
        """The steps of a stage for each partition."""
        steps: list[list[Step]] = [[] for _ in range(count)]
        for node in chain:
            check = conforming_step(node)
            for own, operation in zip(steps, self._operations.of(node, count), strict=True):
                own += [made for made in (step(node, operation), check) if made is not None]
        return steps


def _in_order(nodes: Sequence[Node]) -> Iterator[Node]:
    """Parents first, and queries of a state before its update unless they follow from any.

    Those would wait for each other where each of two states is asked for the other's new values;
    and what is updated is written after the last step.
    """
    queries: dict[Node, list[Node]] = {}
    for node in nodes:
        follows = any(isinstance(before, StateUpdateNode) for before in ancestors(node))
        if isinstance(node, StateQueryNode) and not follows:
            queries.setdefault(node.state, []).append(node)

    begun: set[Node] = set()

    def visit(node: Node) -> Iterator[Node]:
        if node in begun:
            return
        begun.add(node)
        for before in (*node.parents, *queries.get(node, ())):
            yield from visit(before)
        yield node

    for node in nodes:
        yield from visit(node)


def _chains(
    steps: Sequence[Node], consumers: Mapping[Node, list[Node]], result: Node | None
) -> list[list[Node]]:
    """Steps that run as one stage: each partition-local one directly after its only parent."""
    chains: list[list[Node]] = []
    ends: dict[Node, list[Node]] = {}
    for node in steps:
        parent = node.parents[0] if node.parents else None
        joins = (
            parent in ends
            and not isinstance(node, _EXCHANGING)
            and not isinstance(parent, _EXCHANGING)
            and consumers[parent] == [node]
            and parent is not result
            # A query waits until the order lets it run; what precedes it may run earlier.
            and chains[-1] is ends[parent]
        )
        if joins and parent is not None:
            chain = ends.pop(parent)
            chain.append(node)
        else:
            chain = [node]
            chains.append(chain)
        ends[node] = chain
    return chains


def _with_releases(
    stages: Sequence[tuple[int, tuple[int, ...], Stage]], result: int | None
) -> Iterator[tuple[int, tuple[int, ...], Stage, tuple[int, ...]]]:
    """Each stage with the slots that nothing reads after it, so that a batch's tuples can go."""
    last = {parent: slot for slot, parents, _ in stages for parent in parents}
    for slot, parents, stage in stages:
        done = {parent for parent in parents if last[parent] == slot and parent != result}
        if slot not in last and slot != result:
            done.add(slot)
        yield slot, parents, stage, tuple(done)


def _dealt(rows: Rows, count: int) -> Partitions:
    return [rows] if count == 1 else [rows[index::count] for index in range(count)]


def _merged(parents: Sequence[Partitions], count: int) -> Partitions:
    partitions = [rows for parent in parents for rows in parent]
    return partitions if len(partitions) == count else _dealt(gathered(partitions)[0], count)


def _exchange(node: PartitionNode, count: int) -> Stage:
    if count == 1:
        return lambda parents, _: gathered(parents[0])
    if node.how == "broadcast":
        return lambda parents, _: gathered(parents[0]) * count
    if node.how == "shuffle" or node.by is None:
        return lambda parents, _: _dealt(gathered(parents[0])[0], count)
    move = partition_by(node.parent.fields, node.by, count)
    return lambda parents, _: move(parents[0])


def _update(steps: Sequence[Step]) -> Stage:
    def stage(parents: Sequence[Partitions], batch: Batch) -> Partitions:
        partitions = gathered(parents[0]) if len(steps) == 1 else parents[0]
        return each_partition(steps, partitions, batch)

    return stage


def _checked(node: Node, stage: Stage) -> Stage:
    check = conforming_step(node)
    if check is None:
        return stage

    def checked(parents: Sequence[Partitions], batch: Batch) -> Partitions:
        made = stage(parents, batch)
        return [check(rows, index, batch) for index, rows in enumerate(made)]

    return checked


def _fused(steps: Sequence[Sequence[Step]]) -> Stage:
    def stage(parents: Sequence[Partitions], batch: Batch) -> Partitions:
        out = []
        for index, (own, rows) in enumerate(zip(steps, parents[0], strict=True)):
            for run in own:
                rows = run(rows, index, batch)
            out.append(rows)
        return out

    return stage
