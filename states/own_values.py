"""Values that whoever has them may change in place, without changing anyone else's."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

IMMUTABLE = frozenset({int, float, str, bool, bytes, type(None), date, datetime, Decimal, UUID})


def own(value: Any) -> Any:
    """Return `value`, or a copy where it can be changed in place."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if kind is list and IMMUTABLE.issuperset(map(type, value)):
        return value.copy()
    return copy.deepcopy(value)


def own_all(values: Sequence[Any]) -> Sequence[Any]:
    """Return `values`, each as :func:`own` does; two places never have one object."""
    return values if IMMUTABLE.issuperset(map(type, values)) else [*map(own, values)]
