"""Which sources lead to a step, and whether the partition of its tuples is known."""

from __future__ import annotations

from trident.operations.origins import MADE
from trident.operations.row_writer import RowWriter
from trident.plan.nodes import Node, SourceNode, StateUpdateNode
from trident.spouts.classic import has_partitions
from trident.windows.window_updater import WindowUpdater


def knows_origin(node: Node) -> bool:
    """Whether the partition and stream of origin is known for any tuple of a step."""
    return any(isinstance(each, SourceNode) for each in _beginnings(node))


def watched_streams(node: Node) -> tuple[str, ...]:
    """The streams whose partitions a watermark behind a step waits for, `MADE` for tuples without
    origin; empty where all tuples come from one partition."""
    found = _beginnings(node)
    ids = {each.stream_id if isinstance(each, SourceNode) else MADE for each in found}
    if len(ids) > 1 or any(_is_partitioned(each) for each in found):
        return tuple(sorted(ids))
    return ()


def watches_origins(node: Node) -> bool:
    """Whether a step waits for the partitions from which its tuples come."""
    updater = node.updater if isinstance(node, StateUpdateNode) else None
    return isinstance(updater, WindowUpdater) and bool(updater.streams)


def takes_origins(node: Node) -> bool:
    """Whether a step reads the origin of tuples: to wait for it, or to report it of a bad row."""
    updater = node.updater if isinstance(node, StateUpdateNode) else None
    tells = isinstance(updater, RowWriter) and updater.target.dead_letters
    return tells or watches_origins(node)


def _is_partitioned(node: Node) -> bool:
    if not isinstance(node, SourceNode):
        return False
    return bool(node.partition_fields) or has_partitions(node.source)


def _beginnings(node: Node) -> set[Node]:
    """Where the tuples of a step begin: at sources, and at steps that lose the origin."""
    found, seen, pending = set(), {node}, [node]
    while pending:
        each = pending.pop()
        if not each.hands_on:
            found.add(each)
            continue
        pending += [parent for parent in each.parents if parent not in seen]
        seen.update(each.parents)
    return found
