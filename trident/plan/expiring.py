"""What a call says of when the entries of a state expire."""

from __future__ import annotations

from typing import NamedTuple

from trident.errors import PlanError
from trident.plan.nodes import StateDeclaration
from trident.plan.step_checks import check_selection
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType
from trident.tuples.fields import Fields
from trident.windows.expiry import Expiry
from trident.windows.watermarks import check_time
from trident.windows.windows import DurationLike, as_duration


class Expiring(NamedTuple):
    """What a call says of when entries expire."""

    after: DurationLike | None
    field: str | None


NEVER = Expiring(None, None)


def expiry_of(
    call: str, given: Expiring, declaration: StateDeclaration, before: Fields
) -> Expiry | None:
    """When the entries of a state expire, checked; None where they don't."""
    after, field = given
    if after is None:
        if field is not None:
            advice = "Give expire_after= as well, as in expire_after=timedelta(days=30)."
            raise PlanError(
                f"{call}: time_field= says by which time entries expire,", field, (), advice
            )
        return None
    duration = as_duration(f"{call}: expire_after=", after)
    if not duration.milliseconds:
        raise PlanError(f"{call}: the time of expire_after= is above 0, found", str(duration))
    factory = declaration.factory
    if not isinstance(factory, MapStateFactory) or factory.kind is not StateType.OPAQUE:
        what = f"{call}: entries expire only in an opaque map, found another kind of state:"
        advice = 'Give the URL of a store without kind=, as in "sqlite:counts.db".'
        raise PlanError(what, declaration.name, (), advice)
    if field is None:
        return Expiry(duration.milliseconds)
    kind = check_selection(call, Fields(field), before).types[field]
    check_time(call, field, kind)
    return Expiry(duration.milliseconds, field, kind)
