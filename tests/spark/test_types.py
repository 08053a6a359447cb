"""Which steps need to know the types of what they take."""

from __future__ import annotations

from tests.plan.node_classes import names, node_classes
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    JoinNode,
    MergeNode,
    NativeNode,
    NewValuesNode,
    PartitionNode,
    SourceNode,
    StateUpdateNode,
    StaticStateNode,
    StaticStreamNode,
)
from trident.spark.checks import FUSED

BEGIN_A_STAGE = {
    *(AggregateNode, JoinNode, MergeNode, NativeNode, NewValuesNode, PartitionNode),
    *(DRPCNode, SourceNode, StateUpdateNode, StaticStateNode, StaticStreamNode),
}
"""What takes a DataFrame, or nothing."""


def test_every_kind_of_step_runs_in_a_stage_or_begins_one() -> None:
    assert BEGIN_A_STAGE.isdisjoint(FUSED)
    missing = node_classes() - {*FUSED} - BEGIN_A_STAGE
    assert not missing, f"add {names(missing)} to FUSED in trident/spark/checks.py, or else here"
