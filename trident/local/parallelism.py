"""How many partitions each step has in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trident.plan.nodes import MergeNode, Node
from trident.plan.stages import stages


def partition_counts(nodes: Sequence[Node]) -> Mapping[Node, int]:
    """The number of partitions of each step: one, unless a hint or a state asks for more.

    A merge without a hint has the partitions of all its streams, or one where each stream has one.

    Parameters
    ----------
    nodes : sequence of Node
        A batch group, or the steps of a query, in order of creation.
    """
    counts: dict[Node, int] = {}
    for stage in stages(nodes):
        first = stage.nodes[0]
        merged = first.parents if isinstance(first, MergeNode) else ()
        own = [counts[parent] for parent in merged]
        together = sum(own) if any(count > 1 for count in own) else 1
        count = stage.partitions or together
        counts.update(dict.fromkeys(stage.nodes, count))
    return counts
