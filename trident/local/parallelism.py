"""How many partitions each step has in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trident.plan.nodes import MergeNode, Node
from trident.plan.stages import stages


def partition_counts(nodes: Sequence[Node]) -> Mapping[Node, int]:
    """The number of partitions of each step: one, unless a hint or a state asks for more.

    Without a hint, a merge has as many as the streams that it merges.

    Parameters
    ----------
    nodes : sequence of Node
        A batch group, or the steps of a query, in order of creation.
    """
    counts: dict[Node, int] = {}
    for stage in stages(nodes):
        first = stage.nodes[0]
        merged = first.parents if isinstance(first, MergeNode) else ()
        count = stage.partitions or max((counts[parent] for parent in merged), default=1)
        counts.update(dict.fromkeys(stage.nodes, count))
    return counts
