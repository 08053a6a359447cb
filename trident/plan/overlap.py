"""Which groups may compute batches while one is written, and which run on Spark only."""

from __future__ import annotations

from trident.backends.rows import Rows
from trident.plan.nodes import NativeNode, NewValuesNode, StateDeclaration
from trident.plan.plan import BatchGroup
from trident.spouts.classic import ICommitterTransactionalSpout, has_partitions
from trident.spouts.interfaces import ICommitterTridentSpout
from trident.spouts.rich import IRichSpout
from trident.states.maps.factory import MapStateFactory

_COMMITTING = (ICommitterTridentSpout, ICommitterTransactionalSpout, IRichSpout)


def one_at_a_time(group: BatchGroup) -> str | None:
    """Why the batches of a group of spouts run one at a time; None where they may overlap."""
    if group.requests is not None:
        return "a request is answered when its batch is committed"
    for source in group.sources:
        if isinstance(source.source, _COMMITTING):
            return f'the spout of stream "{source.stream_id}" has a part in the commit'
    return begins_first(group)


def begins_first(group: BatchGroup) -> str | None:
    """Why a batch begins before its steps run; None where it need not begin before its updates."""
    for node in group.nodes:
        if node.asks_updated is not None:
            return f"step {node.id} reads a state that they update"
        if isinstance(node, NewValuesNode):
            return f"step {node.id} takes new values of a state"
    return None


def one_at_a_time_on_spark(group: BatchGroup) -> str | None:
    """Why the batches of a group run one at a time with a session; None where they may overlap."""
    return updated_elsewhere(group) or one_at_a_time(group)


def updated_elsewhere(group: BatchGroup) -> str | None:
    """Which state executors update, as ``explain()`` says it; None where the driver hosts all."""
    for update in group.updates:
        if not group.is_here(update.state):
            return f'executors update state "{update.state.name}"'
    return None


def may_be_staged(group: BatchGroup) -> bool:
    """Whether ``max_pending`` makes batches staged, which they are where Spark would not make them
    again."""
    return group.clock == "dataframe" and one_at_a_time_on_spark(group) is None


def only_on_spark(group: BatchGroup) -> str | None:
    """Why every batch of a group of spouts runs on Spark; None where small ones needn't."""
    for source in group.sources:
        if has_partitions(source.source):
            return f'executors emit the partitions of stream "{source.stream_id}"'
    for node in group.nodes:
        if isinstance(node, NativeNode):
            return f"step {node.id} is Spark's own"
        state = node.asks.state if node.asks is not None else node.updates
        if state is not None and _is_elsewhere(group, state):
            return f'state "{state.name}" is no map and lives on the executors'
    return None


def _is_elsewhere(group: BatchGroup, state: StateDeclaration) -> bool:
    """Whether a state's objects have to be made on the executors, as its store may be there."""
    return not (group.is_here(state) or isinstance(state.factory, MapStateFactory | Rows))
