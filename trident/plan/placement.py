"""Which engine runs the batches of a group where a session is passed."""

from __future__ import annotations

from trident.backends.rows import Rows
from trident.plan.nodes import NativeNode, StateDeclaration, StateQueryNode, StateUpdateNode
from trident.plan.plan import BatchGroup
from trident.spouts.classic import has_partitions
from trident.states.maps.factory import MapStateFactory


def only_on_spark(group: BatchGroup) -> str | None:
    """Why every batch of a group of spouts runs on Spark; None where small ones needn't.

    The group's clock are its spouts.
    """
    for source in group.sources:
        if has_partitions(source.source):
            return f'executors emit the partitions of stream "{source.stream_id}"'
    for node in group.nodes:
        if isinstance(node, NativeNode):
            return f"step {node.id} is Spark's own"
        state = _state_of(node)
        if state is not None and _is_elsewhere(group, state):
            return f'state "{state.name}" is no map and lives on the executors'
    return None


def _state_of(node: object) -> StateDeclaration | None:
    if isinstance(node, StateUpdateNode):
        return node.state
    return node.state.state if isinstance(node, StateQueryNode) else None


def _is_elsewhere(group: BatchGroup, state: StateDeclaration) -> bool:
    """Whether a state's objects have to be made where they are on Spark.

    A map is in its store and rows are in their database, which any process reaches; a state of the
    user's own may be where its partition is.
    """
    return not (group.is_here(state) or isinstance(state.factory, MapStateFactory | Rows))
