"""Which fields of a step's output are read by a later step; the others are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trident.operations.origins import ORIGIN
from trident.plan.nodes import MergeNode, Node
from trident.plan.origins import hands_on, knows_origin, watches_origins
from trident.plan.plan import Plan
from trident.tuples.fields import Fields

_ORIGIN = Fields.typed([(ORIGIN, "string")])


def needed_fields(plan: Plan) -> Mapping[Node, Fields]:
    """The fields of each step's output that a later step reads, in their order.

    All fields of a query's result are needed; none where a stream ends without a state.

    Examples
    --------
    >>> from trident import Count, FixedBatchSpout, MemoryMapState, Split, TridentTopology
    >>> topology = TridentTopology()
    >>> stream = topology.newStream("s", FixedBatchSpout("id long, text string", 3))
    >>> counts = (stream.each("text", Split(), "word").groupBy("word")
    ...     .persistentAggregate(MemoryMapState.Factory(), Count(), "count"))
    >>> [str(fields) for fields in needed_fields(topology.plan()).values()]
    ['text', 'word', 'word, count', '']
    """
    asked = (*plan.drpc.values(), *plan.updating.values())
    return fields_needed(plan.nodes, [query.result for query in asked])


def fields_needed(nodes: Sequence[Node], whole: Iterable[Node] = ()) -> Mapping[Node, Fields]:
    """The same for some steps, given in order of creation; with `ORIGIN`, where a step takes it.

    Parameters
    ----------
    nodes : sequence of Node
        The steps.
    whole : iterable of Node
        Those of which every field is needed.
    """
    needed: dict[Node, set[str]] = {node: set() for node in nodes}
    for node in whole:
        needed[node].update(node.fields)
    origins: set[Node] = set()
    for node in reversed(nodes):
        for position, parent in enumerate(node.parents):
            needed[parent].update(node.takes(position, needed[node]))
            if watches_origins(node) or (node in origins and hands_on(node)):
                origins |= {parent} if knows_origin(parent) else set()
    return {
        node: node.fields.select(sorted(names, key=node.fields.index))
        + (_ORIGIN if node in origins else Fields())
        for node, names in needed.items()
    }


def merged_names(node: MergeNode, parent: Node, names: Iterable[str]) -> list[str]:
    """What fields of a merge, `ORIGIN` among them, are called in one of the streams."""
    theirs = dict(zip(node.fields, parent.fields, strict=True))
    return [theirs.get(name, name) for name in names]


def type_of(node: Node, name: str) -> str | None:
    """The type of a needed field of a step, where that is known."""
    return _ORIGIN.types[ORIGIN] if name == ORIGIN else node.fields.types[name]
