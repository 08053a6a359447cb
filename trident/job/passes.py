"""What is decided of a plan before it is a job: order, needed fields, partitions, rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trident.errors import FieldError, PlanError
from trident.operations.builtin import MapGet
from trident.operations.origins import ORIGIN
from trident.plan.nodes import (
    AggregateNode,
    HintNode,
    MergeNode,
    NameNode,
    Node,
    PartitionNode,
    SourceNode,
    SparingNode,
    StateQueryNode,
    StateUpdateNode,
)
from trident.plan.origins import knows_origin, takes_origins
from trident.plan.places import calls_of
from trident.plan.plan import ancestors
from trident.tuples.fields import Fields

ONE_PARTITION = ("global", "batchGlobal")
"""The calls that bring all tuples into one partition."""
_ORIGIN = Fields.typed([(ORIGIN, "string")])


def needed_fields(
    nodes: Sequence[Node], whole: Iterable[Node] = (), dying: Iterable[SparingNode] = ()
) -> Mapping[Node, Fields]:
    """The fields of each step that later ones read, perhaps with `ORIGIN`; all fields of the steps
    in `whole`."""
    needed: dict[Node, set[str]] = {node: set() for node in nodes}
    for node in whole:
        needed[node].update(node.fields)
    for node in dying:
        needed[node.parents[0]].update(node.parents[0].fields)
    origins: set[Node] = set()
    for node in reversed(nodes):
        for position, parent in enumerate(node.parents):
            needed[parent].update(node.takes(position, needed[node]))
            if takes_origins(node) or (node in origins and node.hands_on):
                origins |= {parent} if knows_origin(parent) else set()
    return {
        node: node.fields.select(sorted(names, key=node.fields.index))
        + (_ORIGIN if node in origins else Fields())
        for node, names in needed.items()
    }


def merged_names(node: MergeNode, parent: Node, names: Iterable[str]) -> list[str]:
    """The names that fields of a merge, perhaps `ORIGIN`, have in one of the streams."""
    own = dict(zip(node.fields, parent.fields, strict=True))
    return [own.get(name, name) for name in names]


def partitions_asked(
    nodes: Sequence[Node],
) -> tuple[Mapping[Node, int | None], list[PlanError]]:
    """How many partitions the topology asks for, for each step; None if the engine chooses.

    A hint applies from the last step that moves tuples to the next one; of several hints the
    greatest counts. A state that requires a number wins over hints, and a step that needs a single
    partition wins over both.

    Also returns errors: states with no exchange between them that require different numbers.
    """
    between: list[list[Node]] = []
    of_node: dict[Node, list[Node]] = {}
    for node in nodes:
        before = next((of_node[each] for each in node.parents if each in of_node), None)
        if before is None or node.moves or (is_unkeyed_update(node) and not _is_single(before)):
            between.append(before := [])
        before.append(node)
        of_node[node] = before
    asked: dict[Node, int | None] = {}
    refused = []
    for steps in between:
        required = {} if _is_single(steps) else _required(steps)
        if len(required) > 1:
            names = " and ".join(f"{name!r} ({count})" for count, name in required.items())
            what = f"states {names} need different numbers of partitions in one stage"
            refused.append(PlanError(what, "", (), "Put a partitionBy() between them."))
        hints = [node.parallelism for node in steps if isinstance(node, HintNode)]
        count = 1 if _is_single(steps) else next(iter(required), max(hints, default=None))
        asked |= dict.fromkeys(steps, count)
    return asked, refused


def is_unkeyed_update(node: Node) -> bool:
    """Whether a step updates a state, and no exchange before it brings a key's tuples together, so
    that all tuples have to come into one partition."""
    if not isinstance(node, StateUpdateNode) or node.updater.anywhere:
        return False
    before = unlabelled(node.parent)
    if isinstance(before, AggregateNode):
        return False
    keyed = isinstance(before, PartitionNode) and before.how in ("partitionBy", *ONE_PARTITION)
    return not keyed


def unlabelled(node: Node) -> Node:
    """The nearest step, from this one back, that is no hint and no label."""
    while isinstance(node, HintNode | NameNode):
        node = node.parent
    return node


def _is_single(steps: Sequence[Node]) -> bool:
    """Whether the first of these steps brings all tuples into one partition."""
    first = steps[0]
    if isinstance(first, AggregateNode):
        return not first.group
    return is_unkeyed_update(first) or (
        isinstance(first, PartitionNode) and first.how in ONE_PARTITION
    )


def _required(steps: Sequence[Node]) -> Mapping[int, str]:
    """The numbers of partitions that states require, each with the name of such a state."""
    states = [node.updates for node in steps if node.updates is not None]
    return {each.required_partitions: each.name for each in states if each.required_partitions}


def in_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The steps in the order in which they run: parents first, and queries before any update.

    So a batch that fails while it asks a state has updated none. A query behind an update keeps its
    place: if two states are each queried with the other's new values, neither could come first. It
    still reads the right values, as updates are written after the last step.
    """
    queries = [
        node
        for node in nodes
        if node.asks is not None and all(before.updates is None for before in ancestors(node))
    ]
    begun: set[Node] = set()

    def visit(node: Node) -> Iterator[Node]:
        if node not in begun:
            begun.add(node)
            for parent in node.parents:
                yield from visit(parent)
            yield node

    return tuple([each for node in (*queries, *nodes) for each in visit(node)])


def is_repeatable(node: Node) -> bool:
    """Whether a step's output is the same when it is made again."""
    for before in ancestors(node):
        operation = before.operation
        if operation is not None and not operation.deterministic:
            return False
        match before:  # a spout's tuples are on the driver, so every job gets the same ones
            case SourceNode(clock="dataframe", kind="opaque" | "non-transactional"):
                return False
    return True


def joins_row(row: Sequence[StateQueryNode], node: StateQueryNode) -> bool:
    """Whether a look-up that follows a row can join it.

    A row is a run of `MapGet` look-ups. Each reads another state in a network store, and none needs
    a field that another one adds. So a batch waits for one round trip, however many states it asks,
    if their stores can send before they wait.
    """
    before = row[0].parent.fields
    return (
        all(type(each.function) is MapGet and _waits(each) for each in (*row, node))
        and all(name in before for name in node.inputs)
        and node.asks not in [each.asks for each in row]
    )


def _waits(node: StateQueryNode) -> bool:
    """Whether a state's store is known to be asked over a network."""
    calls = calls_of(node.asks.state.factory)
    return calls is not None and calls.asks


def field_type(node: Node, name: str) -> str:
    """The Spark type of a field; if it is unknown, the error says how to declare it."""
    known = node.fields.types[name]
    if known is not None:
        return known
    maker = node
    while name not in maker.makes and (
        before := next((each for each in maker.parents if name in each.fields), None)
    ):
        maker = before
    what = f"{maker.origin.call} at {maker.origin}: Spark needs the type of field"
    advice = (
        f'Declare it, as in Fields({name}=str) or "{name} string", by the annotation of what the '
        "function returns, or by the operation's output_types."
    )
    raise FieldError(what, name, (), advice)
