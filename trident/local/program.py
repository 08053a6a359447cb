"""The steps of a batch group or a query, compiled once into functions over partitions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from trident.batch.computed import DeferredUpdate
from trident.errors import PlanError
from trident.kernels.build import (
    aggregate_kernel,
    final_kernel,
    grouping_kernel,
    join_kernel,
    query_row,
    tuple_kernel,
    update_kernel,
)
from trident.kernels.kernel import BlockKernel, Kernel
from trident.kernels.origins import with_origin
from trident.kernels.query_row import QueryRow
from trident.kernels.task import Task, step_name
from trident.kernels.type_check import type_check
from trident.kernels.update_kernel import UpdateKernel
from trident.local.exchanges import (
    Move,
    Partitions,
    as_chosen,
    by_key,
    dealt,
    gathered,
    merged,
    move_of,
)
from trident.local.operation_copies import OperationCopies
from trident.local.parallelism import partition_counts
from trident.local.program_input import ProgramInput, Rows
from trident.local.side_by_side import ChainRun, LookUp, Part, SideBySide
from trident.operations.interfaces import CombinerAggregator
from trident.operations.origins import MADE, origin_of
from trident.operations.vectorised import Vectorised
from trident.plan.look_ups import row_of
from trident.plan.needed_fields import fields_needed, merged_names
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    JoinNode,
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
from trident.states.state import State
from trident.tuples.block import NOTHING, Block, joined

PartitionRun = Callable[[Block, Task, ProgramInput], Block]
"""Runs a step in one partition."""

_BEGINNING = (SourceNode, DRPCNode, MergeNode, JoinNode)
_EXCHANGING = (PartitionNode, AggregateNode, StateUpdateNode)


class Program:
    """Runs the steps of a batch group for a batch, or those of a query for a request.

    Steps that follow each other and move no tuples are a chain, which runs as one; in a single
    partition no step moves any. Partitions run one after the other, in the thread that calls
    :meth:`run`. Several threads may run one program where the operations in it allow that. Each
    partition has an object of each operation, prepared once; see `OperationCopies`.

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
        self._operations = OperationCopies()
        self._updates: dict[tuple[StateUpdateNode, int], UpdateKernel] = {}
        steps = [node for node in _in_order(nodes) if not isinstance(node, StaticStateNode)]
        needed = fields_needed(nodes, [result] if result else ())
        self._needed = {node: fields.names for node, fields in needed.items()}
        consumers: dict[Node, list[Node]] = {node: [] for node in steps}
        for node in steps:
            for parent in node.parents:
                consumers[parent].append(node)
        self._taken = {node for node in steps if consumers[node] or node is result}
        self._moving = {node for node in steps if self._moves(node)}
        self._consumers = consumers
        self._divided: dict[Node, Sequence[ChainRun | LookUp]] = {}

        slots: dict[Node, int] = {}
        chains: list[tuple[int, tuple[int, ...], ChainRun]] = []
        for chain in _chains(steps, self._moving, consumers, result):
            slot = slots[chain[-1]] = len(slots)
            run = self._compiled(chain)
            chains.append((slot, tuple(slots[parent] for parent in chain[0].parents), run))
        self._chains = tuple(_with_releases(chains, slots[result] if result else None))
        self._parts = tuple(
            part
            for node, chain in zip(slots, self._chains, strict=True)
            for part in _parts(*chain, self._divided.get(node, ()))
        )
        self._slots = len(slots)
        self._result = slots[result] if result else None
        self._names = result.fields.names if result else ()
        self._conf = conf or {}

    def run(self, given: ProgramInput) -> Rows:
        """Run one batch or request through all steps.

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
        for slot, parents, run, releases in self._chains:
            made[slot] = run([made[parent] for parent in parents], given)
            for index in releases:
                made[index] = None
        if self._result is None:
            return []
        return list(joined(made[self._result]).tuples(self._names))

    def side_by_side(self, given: Sequence[ProgramInput]) -> SideBySide:
        """Begin to run several requests, which ask each state together; see `SideBySide`."""
        return SideBySide(self._parts, self._slots, given)

    def rows(self, requests: SideBySide) -> list[Rows | Exception]:
        """End what :meth:`side_by_side` began: the answer to each request, or what failed it."""
        assert self._result is not None  # a query has a result
        return requests.rows(self._result, self._names)

    def needed_of(self, node: Node) -> tuple[str, ...]:
        """The fields of a step's output that a later step reads."""
        return self._needed[node]

    def update(self, deferred: DeferredUpdate, state: State, task: Task) -> None:
        """Make an update that :meth:`run` has deferred; in any thread."""
        self._updates[deferred.node, deferred.partition].apply(state, deferred.block, task)

    def counted(self) -> dict[str, int]:
        """What operations have counted since this was asked last."""
        return self._operations.counters.taken()

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
        if isinstance(node, PartitionNode) and node.grouping is not None:
            return True
        return self._counts[node] > 1 or self._counts[node.parent] > 1

    def _compiled(self, chain: list[Node]) -> ChainRun:
        node = chain[0]
        count = self._counts[node]
        match node:
            case SourceNode() | DRPCNode():
                return self._source(node, count)
            case MergeNode():
                return self._merge(node, count)
            case JoinNode():
                return self._join(node, count)
            case PartitionNode() if node.grouping is not None:
                return self._grouped(node, count)
            case PartitionNode() if node in self._moving:
                move = _naming(node, move_of(node, count))
                return lambda parents, given: move(parents[0], given)
            case AggregateNode() if node in self._moving:
                return self._aggregate(node, count)
            case StateUpdateNode() if node in self._moving:
                within = _in_each(self._within(node, count))
                if count > 1:
                    return within
                return lambda parents, batch: within([gathered(parents[0])], batch)
            case _:
                return self._within_partitions(chain, count)

    def _within_partitions(self, chain: Sequence[Node], count: int) -> ChainRun:
        """A chain of steps that move no tuples; note its look-ups, and what lies between them."""
        runs: list[list[list[PartitionRun]]] = []
        parts: list[ChainRun | LookUp] = []
        for row, nodes in groupby(chain, self._row):
            if row is None:
                steps = [self._within(node, count) for node in nodes]
                parts.append(_in_each(_one_after_the_other(steps)))
                runs += steps
            else:
                look_ups = [node for node in nodes if isinstance(node, StateQueryNode)]
                look_up = self._look_up(look_ups, count)
                parts.append(look_up)
                runs.append([[_query(look_up.states, each)] for each in look_up.rows])
        if any(isinstance(part, LookUp) for part in parts):
            self._divided[chain[-1]] = parts
        return _in_each(_one_after_the_other(runs))

    def _row(self, node: Node) -> Node | None:
        """The first look-up of the row that a look-up is in; None for other steps."""
        if not isinstance(node, StateQueryNode):
            return None
        return row_of(node, self._consumers.__getitem__)[0]

    def _look_up(self, nodes: Sequence[StateQueryNode], count: int) -> LookUp:
        """Look-ups in a row, or a single one."""
        copies = zip(*(self._operations.of(node, count) for node in nodes), strict=True)
        rows = [query_row(nodes, own, self._needed) for own in copies]
        return LookUp([node.state for node in nodes], rows)

    def _source(self, node: SourceNode | DRPCNode, count: int) -> ChainRun:
        needed = self._needed[node]
        # What a query is asked is a string already.
        check = None if isinstance(node, DRPCNode) else type_check(node)

        def run_chain(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
            block = given.sources.get(node, NOTHING)
            if check is not None:
                block = check.apply(block, given.task(0, count))
            if isinstance(node, SourceNode):
                block = with_origin(block, needed, origin_of(node.stream_id))
            return dealt(block.only(needed), count)

        return run_chain

    def _merge(self, node: MergeNode, count: int) -> ChainRun:
        needed = self._needed[node]
        renamings = [
            dict(zip(merged_names(node, parent, needed), needed, strict=True))
            for parent in node.merged
        ]
        convert = self._converted(node, count)

        def run_chain(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
            streams = [
                [with_origin(block, needed, MADE).renamed(names) for block in partitions]
                for partitions, names in zip(parents, renamings, strict=True)
            ]
            return convert([merged(streams, count)], given)

        return run_chain

    def _join(self, node: JoinNode, count: int) -> ChainRun:
        kernel = join_kernel(node, self._needed[node])
        moves = [by_key(key, count) for key in node.keys]
        convert = self._converted(node, count)

        def run_chain(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
            moved = [move(parent) for move, parent in zip(moves, parents, strict=True)]
            made = [
                kernel.apply(blocks, given.task(index, count))
                for index, blocks in enumerate(zip(*moved, strict=True))
            ]
            return convert([made], given)

        return run_chain

    def _converted(self, node: Node, count: int) -> ChainRun:
        """Give values of several types the one of the field in which they meet."""
        check = type_check(node, self._needed[node])
        return _in_each([[_run(check)] if check else []] * count)

    def _grouped(self, node: PartitionNode, count: int) -> ChainRun:
        """Bring tuples to the partitions that a grouping of the user's chooses."""
        before, needed = self._counts[node.parent], self._needed[node]
        chosen = _in_each(
            [
                [_run(grouping_kernel(node, own, needed, count))]
                for own in self._operations.of(node, before)
            ]
        )
        return lambda parents, given: as_chosen(chosen(parents, given), count)

    def _aggregate(self, node: AggregateNode, count: int) -> ChainRun:
        """Aggregate a batch; combiners first in each partition, then across them."""
        check = _checks(node)
        before = self._counts[node.parent]
        move = _naming(node, by_key(node.group, count))
        if not isinstance(node.aggregator, CombinerAggregator):
            whole = _in_each(self._within(node, count))
            return lambda parents, batch: whole([move(parents[0], batch)], batch)
        firsts = [
            aggregate_kernel(node, own, zero=False) for own in self._operations.of(node, before)
        ]
        first = _in_each([[_run(kernel)] for kernel in firsts])
        finals = [final_kernel(node, own) for own in self._operations.of(node, count)]
        last = _in_each([[_run(kernel), *check] for kernel in finals])
        return lambda parents, given: last([move(first(parents, given), given)], given)

    def _within(self, node: Node, count: int) -> list[list[PartitionRun]]:
        """What runs in each partition of a step that moves no tuples."""
        operations, needed = self._operations.of(node, count), self._needed[node]
        match node:
            case ProjectNode() | HintNode() | NameNode() | NewValuesNode() | PartitionNode():
                return [[] for _ in operations]  # columns have names, and nothing moves
            case FlatMapNode(function=Vectorised()):
                return [[_run(kernel)] for kernel in _arrow_kernels(node, operations)]
            case EachNode() | FilterNode() | MapNode() | FlatMapNode() | PeekNode():
                runs = [_run(tuple_kernel(node, own, needed)) for own in operations]
            case PartitionAggregateNode() | AggregateNode():
                runs = [_run(aggregate_kernel(node, own)) for own in operations]
            case StateUpdateNode():
                kept = needed if node in self._taken else None
                kernels = [update_kernel(node, own, kept) for own in operations]
                self._updates |= {(node, index): each for index, each in enumerate(kernels)}
                return [[_update(node, kernel)] for kernel in kernels]
            case NativeNode():
                what = f"{node.origin.call} at {node.origin}: only Spark can run the step"
                advice = "Start it with a session, start(spark), or write the step in Python."
                raise PlanError(what, node.call_text, (), advice)
            case _:
                what = f"{node.origin.call} at {node.origin}: the local engine can't run a"
                advice = "Tell it how, in trident/local/program.py."
                raise PlanError(what, type(node).__name__, (), advice)
        return [[run, *_checks(node)] for run in runs]


def _arrow_kernels(node: FlatMapNode, operations: Iterable[Any]) -> list[Kernel]:
    """The kernels of a function of record batches, which need the driver of Arrow."""
    try:
        from trident.kernels.arrow_kernel import arrow_kernel
    except ImportError as error:
        what = f"{node.origin.call} at {node.origin}: pyarrow is needed for ({error}):"
        advice = 'Install it: pip install "trident-spark[spark]".'
        raise PlanError(what, node.call_text, (), advice) from error
    return [arrow_kernel(node, own) for own in operations]


def _run(kernel: Kernel) -> PartitionRun:
    if isinstance(kernel, BlockKernel):
        apply = kernel.apply
        return lambda block, task, given: apply(block, task) if block.length else NOTHING
    return lambda block, task, given: joined(kernel.run((block,), task))


def _naming(node: Node, move: Move) -> Callable[[Partitions, ProgramInput], Partitions]:
    """The move, which names the step where a key can't be encoded."""
    step = step_name(node)

    def moved(partitions: Partitions, given: ProgramInput) -> Partitions:
        with given.task(0, len(partitions)).at(step):
            return move(partitions)

    return moved


def _checks(node: Node) -> list[PartitionRun]:
    """The check of what a step makes, if it needs one."""
    check = type_check(node)
    return [] if check is None else [_run(check)]


def _query(states: Sequence[Any], row: QueryRow) -> PartitionRun:
    if len(states) == 1 and row.checks == (None,):  # which most are
        [state], [query] = states, row.queries
        return lambda block, task, given: query.apply(given.queried(state), block, task)
    return lambda block, task, given: row.apply([*map(given.queried, states)], block, task)


def _update(node: StateUpdateNode, kernel: UpdateKernel) -> PartitionRun:
    def run(block: Block, task: Task, given: ProgramInput) -> Block:
        if not kernel.acts_on(block):
            return NOTHING
        if given.deferred is not None:
            update = DeferredUpdate(node, block, task.partition, task.partitions)
            given.deferred.append(update)
            return NOTHING
        with task.at(kernel.step):
            state = given.updated(node)
        return kernel.apply(state, block, task)

    return run


def _one_after_the_other(
    within: Sequence[Sequence[Sequence[PartitionRun]]],
) -> list[list[PartitionRun]]:
    """What runs in each partition of some steps."""
    return [[run for own in runs for run in own] for runs in zip(*within, strict=True)]


def _in_one(runs: Sequence[PartitionRun]) -> ChainRun:
    """Some steps one after the other, in the only partition."""

    def run_chain(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        [block] = parents[0]
        task = given.task(0, 1)
        for run in runs:
            block = run(block, task, given)
        return [block]

    return run_chain


def _in_each(runs: Sequence[Sequence[PartitionRun]]) -> ChainRun:
    """Some steps one after the other, in each partition for itself."""
    count = len(runs)
    if count == 1:
        return _in_one(runs[0])

    def run_chain(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        out = []
        for index, (own, block) in enumerate(zip(runs, parents[0], strict=True)):
            task = given.task(index, count)
            for run in own:
                block = run(block, task, given)
            out.append(block)
        return out

    return run_chain


def _in_order(nodes: Sequence[Node]) -> Iterator[Node]:
    """Parents first, and a query of a state before the state's update.

    A query that follows from an update keeps its place: where two states are each queried with the
    other's new values, neither could come first. It reads the right values all the same, as updates
    are written after the last step.
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
    """The steps by chains: one that moves no tuples joins the chain of its only parent."""
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
            # The step before a query may run earlier than the query, which waits for its turn.
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
    chains: Sequence[tuple[int, tuple[int, ...], ChainRun]], result: int | None
) -> Iterator[tuple[int, tuple[int, ...], ChainRun, tuple[int, ...]]]:
    """Add to each chain the slots that nothing reads after it, so that their tuples can go."""
    last = {parent: slot for slot, parents, _ in chains for parent in parents}
    for slot, parents, run in chains:
        done = {parent for parent in parents if last[parent] == slot and parent != result}
        if slot not in last and slot != result:
            done.add(slot)
        yield slot, parents, run, tuple(done)


def _parts(
    slot: int,
    parents: tuple[int, ...],
    run: ChainRun,
    releases: tuple[int, ...],
    divided: Sequence[ChainRun | LookUp],
) -> Iterator[Part]:
    """The parts of a chain: those that it is divided into, or it as a whole."""
    parts = divided or (run,)
    for index, part in enumerate(parts):
        takes = parents if index == 0 else (slot,)
        yield Part(slot, takes, part, releases if index == len(parts) - 1 else ())
