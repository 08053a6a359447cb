"""What must hold before a topology starts, whichever engine runs it."""

from __future__ import annotations

import os
import warnings
from typing import Any

from trident.errors import GuaranteeWarning, OperationTypeError, PlanError
from trident.plan.describe import describe
from trident.plan.guarantee import guarantee, kept_as
from trident.plan.nodes import NativeNode, SourceNode, StateUpdateNode
from trident.plan.plan import Plan
from trident.plan.stages import stages
from trident.states.values import StateType


def check_start(
    plan: Plan,
    spark: Any,
    checkpoint: Any,
    trigger: Any,
    retries: Any,
    on_failure: Any,
    adopt: Any,
) -> None:
    """Refuse what can't run, and warn of states that can't be exact.

    Raises
    ------
    PlanError
        See ``TridentTopology.start``.
    """
    if not plan.groups and not plan.drpc:
        advice = "Declare a stream with newStream() or newDRPCStream() first."
        raise PlanError("start: the topology is empty", "", (), advice)
    check_arguments(spark, checkpoint, trigger, retries, on_failure)
    if adopt is not None and checkpoint is None:
        advice = "Give checkpoint=, or the state would belong to a log that is gone with this run."
        raise PlanError("start: without a checkpoint nothing can be adopted", "", (), advice)
    if spark is None:
        check_local(plan)
    if on_failure == "dead-letter":
        check_dead_letter(plan)
    for part in plan.parts:
        stages(part.nodes)
    warn_inexact(plan)


def check_arguments(
    spark: Any, checkpoint: Any, trigger: Any, retries: Any, on_failure: Any
) -> None:
    """Each argument of ``start`` is in its range."""
    if spark is not None and not hasattr(spark, "createDataFrame"):
        advice = "Write start(spark, checkpoint=…), or start(checkpoint=…) to run without Spark."
        raise OperationTypeError("start: no SparkSession is", repr(spark), (), advice)
    if checkpoint is not None and not (isinstance(checkpoint, str | os.PathLike) and checkpoint):
        raise PlanError("start: the checkpoint is the path of a folder, found", repr(checkpoint))
    is_number = isinstance(trigger, int | float) and not isinstance(trigger, bool)
    if trigger not in (None, "available") and not (is_number and 0 < trigger < float("inf")):
        what = 'start: the trigger is a number of seconds above 0, "available" or None; found'
        raise PlanError(what, repr(trigger))
    if type(retries) is not int or retries < 0:
        raise PlanError("start: retries are a whole number from 0, found", repr(retries))
    if on_failure not in ("stop", "dead-letter"):
        raise PlanError("start: no on_failure is", str(on_failure), ("stop", "dead-letter"))


def check_local(plan: Plan) -> None:
    """No step needs Spark."""
    for node in plan.nodes:
        frame = isinstance(node, SourceNode) and node.clock == "dataframe"
        if frame or isinstance(node, NativeNode):
            what = f"start: Spark is needed for the step at {node.origin}:"
            advice = "Pass a session: start(spark, …); trident.spark.local_session() makes one."
            raise PlanError(what, describe(node), (), advice)


def check_dead_letter(plan: Plan) -> None:
    """Only opaque maps can take back what a batch has written so far."""
    for node in plan.nodes:
        if isinstance(node, StateUpdateNode) and kept_as(node.state) is not StateType.OPAQUE:
            what = 'start: on_failure="dead-letter" needs opaque maps; not so is the state'
            advice = 'Use on_failure="stop", or keep the state in an opaque map.'
            raise PlanError(what, node.state.name, (), advice)


def warn_inexact(plan: Plan) -> None:
    """Say which states can't be exact, and what would be."""
    for node in plan.nodes:
        if isinstance(node, StateUpdateNode):
            found = guarantee(plan, node)
            if not found.exact:
                text = f"state {node.state.name!r} is {found.level}: {found.why}. {found.advice}"
                warnings.warn(GuaranteeWarning(text), stacklevel=4)
