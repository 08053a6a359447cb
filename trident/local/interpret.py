"""A component of a plan, compiled once into closures over the partitions of a batch."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trident.errors import PlanError
from trident.kernels.block import NOTHING, Block, joined
from trident.kernels.conforming import conform_step
from trident.kernels.nodes import final_step, fold_step, lookup_of, tuple_step, update_of
from trident.kernels.step import BlockStep, Step
from trident.kernels.task import Task, place_of
from trident.local.batch import Batch, Rows
from trident.local.exchanges import Partitions, by_key, dealt, exchange, gathered, merged
from trident.local.operations import Operations
from trident.local.parallelism import partition_counts
from trident.operations.interfaces import CombinerAggregator
from trident.plan.describe import describe
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    MergeNode,
    NameNode,
    NativeNode,
    NewValuesNode,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    ProjectNode,
    SourceNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
)
from trident.plan.plan import ancestors
from trident.plan.rewrites.prune import fields_needed

Stage = Callable[[Sequence[Partitions], Batch], Partitions]
"""From what the parents made to what a step makes."""

Run = Callable[[Block, Task, Batch], Block]
"""From the tuples of a partition to those after a step."""

_BEGINNING = (SourceNode, DRPCNode, MergeNode)
_EXCHANGING = (PartitionNode, AggregateNode, StateUpdateNode)


class Program:
    """What a component does with a batch or a query, in this process.

    Consecutive steps that move no tuples are one stage; in a single partition no step moves any.
    Partitions run one after the other, in the thread that calls :meth:`run`; several threads may
    run one program where the operations in it allow that. Each partition has an object of each
    operation, prepared once; see `Operations`.

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
        needed = fields_needed(nodes, [result] if result else ())
        self._needed = {node: fields.names for node, fields in needed.items()}
        consumers: dict[Node, list[Node]] = {node: [] for node in steps}
        for node in steps:
            for parent in node.parents:
                consumers[parent].append(node)
        self._taken = {node for node in steps if consumers[node]}
        self._moving = {node for node in steps if self._moves(node)}

        slots: dict[Node, int] = {}
        stages: list[tuple[int, tuple[int, ...], Stage]] = []
        for chain in _chains(steps, self._moving, consumers, result):
            slot = slots[chain[-1]] = len(slots)
            stage = self._stage(chain)
            stages.append((slot, tuple(slots[parent] for parent in chain[0].parents), stage))
        self._stages = tuple(_with_releases(stages, slots[result] if result else None))
        self._slots = len(slots)
        self._result = slots[result] if result else None
        self._names = result.fields.names if result else ()
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
        return list(joined(made[self._result]).tuples(self._names))

    def prepare(self) -> None:
        """Prepare all operations, once; before the first run."""
        self._operations.prepare(self._conf)

    def close(self) -> None:
        """Clean all operations up, once; after the last run."""
        self._operations.cleanup()

    def _moves(self, node: Node) -> bool:
        """Whether a step takes tuples from elsewhere than its partition of the step before."""
        if not isinstance(node, _EXCHANGING):
            return isinstance(node, _BEGINNING)
        return self._counts[node] > 1 or self._counts[node.parent] > 1

    def _stage(self, chain: list[Node]) -> Stage:
        node = chain[0]
        count = self._counts[node]
        match node:
            case SourceNode() | DRPCNode():
                return self._source(node, count)
            case MergeNode():
                return self._merge(node, count)
            case PartitionNode() if node in self._moving:
                move = exchange(node, count)
                return lambda parents, _: move(parents[0])
            case AggregateNode() if node in self._moving:
                return self._aggregate(node, count)
            case StateUpdateNode() if node in self._moving:
                within = _in_each(self._within(node, count))
                if count > 1:
                    return within
                return lambda parents, batch: within([gathered(parents[0])], batch)
            case _:
                runs: list[list[Run]] = [[] for _ in range(count)]
                for each in chain:
                    for own, made in zip(runs, self._within(each, count), strict=True):
                        own += made
                return _in_each(runs)

    def _source(self, node: SourceNode | DRPCNode, count: int) -> Stage:
        needed = self._needed[node]
        # What a query is asked is a string already.
        check = None if isinstance(node, DRPCNode) else conform_step(node, place_of(node))

        def stage(parents: Sequence[Partitions], batch: Batch) -> Partitions:
            block = batch.sources.get(node, NOTHING)
            if check is not None:
                block = check.apply(block, batch.task(0, count))
            return dealt(block.only(needed), count)

        return stage

    def _merge(self, node: MergeNode, count: int) -> Stage:
        renamings = [
            {parent.fields.names[node.fields.index(name)]: name for name in self._needed[node]}
            for parent in node.merged
        ]

        def stage(parents: Sequence[Partitions], batch: Batch) -> Partitions:
            streams = [
                [block.renamed(names) for block in partitions]
                for partitions, names in zip(parents, renamings, strict=True)
            ]
            return merged(streams, count)

        return stage

    def _aggregate(self, node: AggregateNode, count: int) -> Stage:
        """Aggregate a batch; combiners first in each partition, then across them."""
        place = place_of(node)
        check = _checks(node)
        before = self._counts[node.parent]
        move = by_key(node.group, count)
        if not isinstance(node.aggregator, CombinerAggregator):
            whole = _in_each(self._within(node, count))
            return lambda parents, batch: whole([move(parents[0])], batch)
        firsts = [
            fold_step(node, own, place, zero=False) for own in self._operations.of(node, before)
        ]
        first = _in_each([[_run(step)] for step in firsts])
        finals = [final_step(node, own, place) for own in self._operations.of(node, count)]
        last = _in_each([[_run(step), *check] for step in finals])
        return lambda parents, batch: last([move(first(parents, batch))], batch)

    def _within(self, node: Node, count: int) -> list[list[Run]]:
        """What each partition does in a step that moves no tuples."""
        operations, needed = self._operations.of(node, count), self._needed[node]
        match node:
            case ProjectNode() | HintNode() | NameNode() | NewValuesNode() | PartitionNode():
                return [[] for _ in operations]  # columns have names, and nothing moves
            case EachNode() | FilterNode() | MapNode() | FlatMapNode() | PeekNode():
                place = place_of(node)
                runs = [_run(tuple_step(node, own, place, needed)) for own in operations]
            case PartitionAggregateNode() | AggregateNode():
                place = place_of(node)
                runs = [_run(fold_step(node, own, place)) for own in operations]
            case StateQueryNode():
                runs = [_query(node, own, needed) for own in operations]
            case StateUpdateNode():
                kept = needed if node in self._taken else None
                return [[_update(node, own, kept)] for own in operations]
            case NativeNode():
                what = f"{node.origin.call} at {node.origin}: only Spark can run the step"
                advice = "Start it with a session, start(spark), or write the step in Python."
                raise PlanError(what, describe(node), (), advice)
            case _:
                what = f"{node.origin.call} at {node.origin}: the local engine can't run a"
                advice = "Tell it how, in trident/local/interpret.py."
                raise PlanError(what, type(node).__name__, (), advice)
        return [[run, *_checks(node)] for run in runs]


def _run(step: Step) -> Run:
    if isinstance(step, BlockStep):
        apply = step.apply
        return lambda block, task, batch: apply(block, task) if block.length else NOTHING
    return lambda block, task, batch: joined(step.run((block,), task))


def _checks(node: Node) -> list[Run]:
    """The check of what a step makes, where any type of it is checked."""
    check = conform_step(node, place_of(node))
    return [] if check is None else [_run(check)]


def _query(node: StateQueryNode, operation: Any, needed: Iterable[str]) -> Run:
    asks = lookup_of(node, operation, place_of(node), needed)
    return lambda block, task, batch: asks.apply(batch.queried(node.state), block, task)


def _update(node: StateUpdateNode, operation: Any, kept: tuple[str, ...] | None) -> Run:
    place = place_of(node)
    update = update_of(node, operation, place, kept)

    def run(block: Block, task: Task, batch: Batch) -> Block:
        if not block.length:
            return NOTHING
        with task.at(place):
            state = batch.updated(node)
        return update.apply(state, block, task)

    return run


def _in_one(runs: Sequence[Run]) -> Stage:
    """Some steps one after the other, in the only partition."""

    def stage(parents: Sequence[Partitions], batch: Batch) -> Partitions:
        [block] = parents[0]
        task = batch.task(0, 1)
        for run in runs:
            block = run(block, task, batch)
        return [block]

    return stage


def _in_each(runs: Sequence[Sequence[Run]]) -> Stage:
    """Some steps one after the other, in each partition for itself."""
    count = len(runs)
    if count == 1:
        return _in_one(runs[0])

    def stage(parents: Sequence[Partitions], batch: Batch) -> Partitions:
        out = []
        for index, (own, block) in enumerate(zip(runs, parents[0], strict=True)):
            task = batch.task(index, count)
            for run in own:
                block = run(block, task, batch)
            out.append(block)
        return out

    return stage


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
    steps: Sequence[Node],
    moving: Container[Node],
    consumers: Mapping[Node, list[Node]],
    result: Node | None,
) -> list[list[Node]]:
    """Steps that run as one stage: each that moves nothing directly after its only parent."""
    chains: list[list[Node]] = []
    ends: dict[Node, list[Node]] = {}
    for node in steps:
        parent = node.parents[0] if node.parents else None
        joins = (
            parent in ends
            and node not in moving
            and parent not in moving
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
