"""Which fields of each step's output anything after it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trident.plan.nodes import Node
from trident.plan.plan import Plan
from trident.tuples.fields import Fields


def needed_fields(plan: Plan) -> Mapping[Node, Fields]:
    """The fields each step must really deliver, in the order of its output.

    A query's result is needed whole; a stream that ends without a state needs nothing.

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
    return fields_needed(plan.nodes, [query.result for query in plan.drpc.values()])


def fields_needed(nodes: Sequence[Node], whole: Iterable[Node] = ()) -> Mapping[Node, Fields]:
    """The fields that each of some steps must deliver, given in order of creation.

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
