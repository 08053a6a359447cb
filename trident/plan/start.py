"""What must hold before a topology starts, whichever engine runs it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from trident.errors import GuaranteeWarning, OperationTypeError, PlanError, UsageError
from trident.plan.describe import describe
from trident.plan.guarantee import guarantee, kept_as, map_type
from trident.plan.nodes import NativeNode, SourceNode, StateQueryNode, StateUpdateNode
from trident.plan.plan import Plan
from trident.plan.queries import check_made
from trident.plan.stages import stages
from trident.states.values import StateType
from trident.trigger import check_trigger


def check_start(
    plan: Plan,
    spark: Any,
    checkpoint: Any,
    trigger: Any,
    retries: Any,
    on_failure: Any,
    patience: Any,
    adopt: Any,
    accept_loss: Any,
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
    check_arguments(spark, checkpoint, trigger, retries, on_failure, patience)
    if adopt is not None and checkpoint is None:
        advice = "Give checkpoint=, or the state would belong to a log that is gone with this run."
        raise PlanError("start: without a checkpoint nothing can be adopted", "", (), advice)
    check_losses(plan, accept_loss)
    if spark is None:
        check_local(plan)
    if on_failure == "dead-letter":
        check_dead_letter(plan)
    for part in plan.parts:
        stages(part.nodes)
    check_states(plan)
    warn_inexact(plan)
    if checkpoint is not None:
        warn_forgetful(plan)


def check_arguments(
    spark: Any, checkpoint: Any, trigger: Any, retries: Any, on_failure: Any, patience: Any
) -> None:
    """Each argument of ``start`` is in its range."""
    if spark is not None and not hasattr(spark, "createDataFrame"):
        advice = "Write start(spark, checkpoint=…), or start(checkpoint=…) to run without Spark."
        raise OperationTypeError("start: no SparkSession is", repr(spark), (), advice)
    if checkpoint is not None and not (isinstance(checkpoint, str | os.PathLike) and checkpoint):
        raise PlanError("start: the checkpoint is the path of a folder, found", repr(checkpoint))
    check_trigger(trigger)
    if type(retries) is not int or retries < 0:
        raise PlanError("start: retries are a whole number from 0, found", repr(retries))
    if on_failure not in ("stop", "dead-letter"):
        raise PlanError("start: no on_failure is", str(on_failure), ("stop", "dead-letter"))
    if type(patience) not in (int, float) or not patience >= 0:
        raise PlanError("start: patience is a number of seconds from 0, found", repr(patience))


def check_losses(plan: Plan, accept_loss: Any) -> None:
    """Every loss that is accepted is a state's, and says of which batch."""
    known = [node.state.name for node in plan.nodes if isinstance(node, StateUpdateNode)]
    if not isinstance(accept_loss, Mapping):
        what = "start: accept_loss takes {state: batch}, as the error says it; found"
        raise PlanError(what, repr(accept_loss))
    for name, txid in accept_loss.items():
        if name not in known:
            raise PlanError("start: accept_loss names no state", str(name), known)
        if type(txid) is not int or txid < 1:
            what = f"start: accept_loss takes the number of a batch for {name!r}, found"
            raise PlanError(what, repr(txid))


def check_states(plan: Plan) -> None:
    """Every state can be had, as far as it can tell without connecting, and can be queried so."""
    for state in plan.states:
        check_place = getattr(state.state.factory, "check_place", None)
        try:
            if callable(check_place):
                check_place()
        except UsageError as error:
            what, *rest = error.args
            raise PlanError(f"start: state {state.state.name!r}: {what}", *rest) from error
    for node in plan.nodes:
        if isinstance(node, StateQueryNode):
            check_made(node)


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


def warn_forgetful(plan: Plan) -> None:
    """Say which states end with this process, unlike the checkpoint."""
    for node in plan.nodes:
        if isinstance(node, StateUpdateNode):
            kind = map_type(node.state)
            if kind is not None and not kind.lasts:
                text = (
                    f"state {node.state.name!r} is in memory and ends with this process, but the "
                    "checkpoint keeps what is counted: the next process can't start from it. Keep "
                    "the state in a store that lasts, such as 'sqlite:counts.db', or start "
                    "without a checkpoint."
                )
                warnings.warn(GuaranteeWarning(text), stacklevel=4)
