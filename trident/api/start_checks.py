"""What is checked before a topology starts, whichever engine runs it; imports no engine."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence

from trident.batch.start_options import StartOptions
from trident.errors import GuaranteeWarning, PlanError, UsageError
from trident.job.passes import partitions_asked
from trident.operations.builtin import Debug, Negate
from trident.operations.callables import Native
from trident.operations.interfaces import Consumer
from trident.operations.kept_answers import KeptAnswers
from trident.plan.guarantee import guarantee
from trident.plan.nodes import Node
from trident.plan.plan import Plan
from trident.plan.query_checks import check_made, check_made_updatable
from trident.spouts.classic import ICommitterTransactionalSpout
from trident.spouts.interfaces import ICommitterTridentSpout
from trident.states.values import StateType

_logger = logging.getLogger("trident")
_COMMITTERS = (ICommitterTridentSpout, ICommitterTransactionalSpout)
"""Spouts that do something themselves when a batch is committed."""


def check_start(plan: Plan, options: StartOptions) -> None:
    """Refuse what can't run, whichever engine it is started on."""
    if not plan.groups and not plan.drpc:
        advice = "Declare a stream with newStream() or newDRPCStream() first."
        raise PlanError("start: the topology is empty", "", (), advice)
    states = [node.state.kept_name for node in plan.updates]
    streams = [each.stream_id for group in plan.groups for each in group.sources]
    check_known("accept_loss names no state", options.accept_loss, states)
    check_known("accept_change names no state or stream", options.accept_change, states + streams)
    if options.on_failure == "dead-letter":
        check_dead_letter(plan)
    check_requests(plan, options)
    for part in plan.parts:
        _, refused = partitions_asked(part.steps)
        if refused:
            raise refused[0]
    check_states(plan)
    check_expiries(plan)


def check_requests(plan: Plan, options: StartOptions) -> None:
    """Refuse ``answers=`` of a query, and a trigger that ends while requests may come."""
    for node in plan.updates:
        if isinstance(node.updater, KeptAnswers) and plan.group_of(node) is None:
            what = "start: answers= is for a DRPC stream that updates a state; not so is that of"
            advice = "Leave it out: a query changes nothing, so it may be repeated."
            raise PlanError(what, node.state.name, (), advice)
    for function in plan.updating:
        if options.trigger == "available":
            what = "start: trigger='available' ends where sources have nothing more, but requests "
            advice = "Leave trigger= out, and stop the run by stop()."
            raise PlanError(f"{what}come at any time to", function, (), advice)


def check_known(problem: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that the plan doesn't have."""
    for name in names:
        if name not in known:
            raise PlanError(f"start: {problem}", str(name), known)


def check_states(plan: Plan) -> None:
    """Refuse a state at a place that can't be, as far as is known without connecting, or without a
    method that its queries and updates call."""
    for state in plan.states:
        try:
            state.state.factory.check_place()
        except UsageError as error:
            what, *rest = error.args
            raise PlanError(f"start: state {state.state.name!r}: {what}", *rest) from None
    for query in plan.look_ups:
        check_made(query)
    for update in plan.updates:
        check_made_updatable(update)


def check_expiries(plan: Plan) -> None:
    """Refuse two times in one group: its log keeps one, by which all its states are read."""
    for group in plan.groups:
        expiring = [each for each in group.updates if each.expiry is not None]
        by_batch = {each.expiry and each.expiry.field is None for each in expiring}
        if len(by_batch) > 1:
            what = "start: entries expire by a field in some states, and by the time of batches in "
            what += "others, of streams that share batches:"
            advice = "Give time_field= to all of them, or to none."
            raise PlanError(what, ", ".join(each.state.name for each in expiring), (), advice)


def check_dead_letter(plan: Plan) -> None:
    """Refuse dead letters unless all states are opaque maps: in others, what a given-up batch has
    written would stay."""
    for node in plan.updates:
        if node.state.factory.kind is not StateType.OPAQUE:
            what = 'start: on_failure="dead-letter" needs opaque maps; not so is the state'
            advice = 'Use on_failure="stop", or keep the state in an opaque map.'
            raise PlanError(what, node.state.name, (), advice)


def warn(plan: Plan, options: StartOptions) -> None:
    """Warn of states that can't be exact, or are lost before their checkpoint."""
    warn_inexact(plan, options.max_pending)
    if options.checkpoint is not None:
        warn_forgetful(plan)


def warn_inexact(plan: Plan, max_pending: int = 1) -> None:
    """Warn of states that can't be exact, and say what would be."""
    for node in plan.updates:
        found = guarantee(plan, node, max_pending)
        if not found.exact:
            text = f"state {node.state.name!r} is {found.level}: {found.why}. {found.advice}"
            warnings.warn(GuaranteeWarning(text), stacklevel=5)


def warn_forgetful(plan: Plan) -> None:
    """Warn of states that end with this process, unlike the checkpoint."""
    for node in plan.updates:
        kind = node.state.factory.map_type
        if kind is not None and not kind.lasts:
            text = (
                f"state {node.state.name!r} is in memory and ends with this process, but the "
                "checkpoint keeps what is counted: the next process can't start from it. Keep "
                "the state in a store that lasts, such as 'sqlite:counts.db', or start "
                "without a checkpoint."
            )
            warnings.warn(GuaranteeWarning(text), stacklevel=5)


def warn_unused(plan: Plan) -> None:
    """Log a warning for each stream whose tuples nothing keeps or shows, and no code of the user
    gets."""
    for group in plan.groups:
        for source in group.sources:
            used = _downstream(plan, source)
            acts = isinstance(source.source, _COMMITTERS) or any(map(_may_act, used))
            if group.requests is None and not acts:
                _logger.warning(
                    "stream %r, declared at %s, ends in %s: nothing keeps or shows what comes out "
                    "of it. Add persistentAggregate(…) or peek(…) to the stream that this gives; "
                    "a call leaves the one it is called on as it is.",
                    source.stream_id,
                    source.origin,
                    used[-1].call_text,
                )


def _downstream(plan: Plan, source: Node) -> list[Node]:
    """A step and all that follow it, in order of creation."""
    found = {source}
    for node in plan.nodes:
        if found.intersection(node.parents):
            found.add(node)
    return [node for node in plan.nodes if node in found]


def _may_act(node: Node) -> bool:
    """Whether a step may do more than make tuples."""
    if node.updates is not None:
        return True
    operation = node.operation
    while isinstance(operation, Negate):
        operation = operation.filter
    home = type(operation).__module__
    pure = home in ("trident.operations.builtin", "trident.operations.kept_tuples")
    if operation is None or isinstance(operation, Native):
        return False
    return isinstance(operation, Debug | Consumer) or not pure
