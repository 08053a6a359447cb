"""A batch group as the Spark engine sees it, the same for all batches."""

from __future__ import annotations

from functools import cached_property
from itertools import takewhile

from trident.plan.look_ups import row_of
from trident.plan.needed_fields import needed_fields
from trident.plan.nodes import (
    AggregateNode,
    HintNode,
    NameNode,
    NativeNode,
    NewValuesNode,
    Node,
    PartitionNode,
    ProjectNode,
    SourceNode,
    StateDeclaration,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
)
from trident.plan.plan import BatchGroup, Plan, ancestors
from trident.plan.stages import stages, unlabelled
from trident.spark.natives import makes_rows

_PLAIN = (StateUpdateNode, StaticStateNode, NewValuesNode, SourceNode)


class GroupPlan:
    """A batch group, with answers to what each of its batches asks.

    Parameters
    ----------
    plan : Plan
        The whole plan.
    group : BatchGroup
        The group.
    partitions : int
        How many partitions an exchange makes where nothing else is said.
    """

    def __init__(self, plan: Plan, group: BatchGroup, partitions: int) -> None:
        self.group = group
        self.nodes = group.nodes
        self.needed = {node: fields.names for node, fields in needed_fields(plan).items()}
        self._consumers = {
            node: [c for c in plan.consumers(node) if c in group.nodes] for node in group.nodes
        }
        self._hints = {
            node: stage.partitions for stage in stages(group.nodes) for node in stage.nodes
        }
        self.partitions = max([partitions, *(n or 1 for n in self._hints.values())])

    def hint(self, node: Node) -> int | None:
        """How many partitions a step has by hint or state; None where nothing is said."""
        return self._hints[node]

    def consumers(self, node: Node) -> list[Node]:
        """The steps of the group that take a step's output."""
        return self._consumers[node]

    def is_shared(self, node: Node) -> bool:
        """Whether a step's output is read more than once in a batch."""
        return len(self.consumers(node)) > 1

    def is_deterministic(self, node: Node) -> bool:
        """Whether a step's output is the same when it is made again."""
        for before in ancestors(node):
            operation = before.facts.operation
            if operation is not None and not operation.deterministic:
                return False
            match before:  # a spout's tuples are on the driver: every job is given the same ones
                case SourceNode(clock="dataframe", kind="opaque" | "non-transactional"):
                    return False
        return True

    def is_routed_later(self, node: PartitionNode) -> bool:
        """Whether only a state update follows, which moves each key to its partition itself."""
        return node.how in ("partitionBy", "global", "batchGlobal") and self.only_updates(node)

    def only_updates(self, node: Node) -> bool:
        """Whether a step's output goes to one state update, and nowhere else."""
        after = self.consumers(node)
        while len(after) == 1 and isinstance(after[0], HintNode | NameNode):
            after = self.consumers(after[0])
        return len(after) == 1 and isinstance(after[0], StateUpdateNode)

    @cached_property
    def queries(self) -> tuple[StateQueryNode, ...]:
        """The queries that don't follow from a state update of the same batch; of a row the
        last."""
        return tuple(
            node
            for node in self.nodes
            if isinstance(node, StateQueryNode)
            and self._ends_row(node)
            and not any(isinstance(before, StateUpdateNode) for before in ancestors(node))
        )

    @cached_property
    def ends(self) -> tuple[Node, ...]:
        """The last steps of streams, where they do any work."""
        return tuple(
            node
            for node in self.nodes
            if not self.consumers(node) and not isinstance(unlabelled(node), _PLAIN)
        )

    def asks_here(self, query: StateQueryNode) -> bool:
        """Whether a state is asked in this process, for all tuples of a batch or a request.

        What a request reads is what batches have committed, which takes a look at the control
        records first.
        """
        return self.group.requests is not None or is_on_driver(query.state.state)

    def row(self, query: StateQueryNode) -> tuple[StateQueryNode, ...]:
        """The look-ups that are made at once with a step, which is the last of them."""
        here = self.asks_here(query)

        def joins(each: StateQueryNode) -> bool:
            # What is asked here is asked for distinct inputs: those of several fields are more.
            alike = not here or set(each.inputs) == set(query.inputs)
            return alike and self.asks_here(each) == here

        found = takewhile(joins, reversed(row_of(query, self.consumers)))
        return tuple(reversed([*found]))

    def _ends_row(self, query: StateQueryNode) -> bool:
        after = self.consumers(query)
        return not (
            len(after) == 1 and isinstance(after[0], StateQueryNode) and query in self.row(after[0])
        )

    def kept_of(self, update: StateUpdateNode) -> tuple[str, ...] | None:
        """The new values that a later step reads; None where no step takes them."""
        if not any(isinstance(node, NewValuesNode) for node in self.consumers(update)):
            return None
        return self.needed[update]

    def aggregate_before(self, update: StateUpdateNode) -> AggregateNode | None:
        """The aggregate that only this update takes, if there is one directly before it."""
        node: Node = update
        while isinstance(node, StateUpdateNode | HintNode | NameNode):
            node = node.parent
            if self.is_shared(node):
                return None
        return node if isinstance(node, AggregateNode) else None

    def chain(self, source: SourceNode, last: Node) -> list[Node]:
        """The steps after a source up to `last`, each with one parent."""
        found: list[Node] = []
        while last is not source:
            found.insert(0, last)
            [last] = last.parents
        return found

    def native_prefix(self, source: SourceNode) -> Node:
        """The last step of a stream that Structured Streaming runs before ``foreachBatch``.

        Up to there Spark prunes columns and pushes filters down. A step that makes several rows of
        one runs within the batch, as each row that is handed to the batch costs time.
        """
        node: Node = source
        while len(self.consumers(node)) == 1:
            [after] = self.consumers(node)
            if not isinstance(after, NativeNode | ProjectNode | NameNode):
                break
            if isinstance(after, NativeNode) and makes_rows(after):
                break
            node = after
        return node


def is_on_driver(state: StateDeclaration) -> bool:
    """Whether a state is updated in the driver's process, and so can only be reached there."""
    return state.factory.hosted == "driver"
