"""Which fields of a step's output are read by a later step; the others are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trident.plan.nodes import Node
from trident.plan.plan import Plan
from trident.tuples.fields import Fields


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
    """The same for some steps, given in order of creation.

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
    for node in reversed(nodes):
        for position, parent in enumerate(node.parents):
            needed[parent].update(node.takes(position, needed[node]))
    return {
        node: node.fields.select(sorted(names, key=node.fields.index))
        for node, names in needed.items()
    }
