"""The status rows of tasks: errors are reported in them, so that Spark does not retry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trident.spark.error_json import error_from_json
from trident.spark.errors import StatusError
from trident.spark.seal import Seal
from trident.states.errors import FailedException, StaleBatchError, UnavailableError

STATUS = "__trident_status"
"""The column of a task's status, null in its other rows."""


def open_statuses(statuses: Iterable[str], seal: Seal) -> list[dict[str, Any]]:
    """Return what the tasks of this attempt have reported; raise the most serious error."""
    done, errors = [], []
    for status in statuses:
        match seal.read(status):
            case {"done": dict(document)}:
                done.append(document)
            case None:
                raise StatusError(status)
            case form:
                errors.append(error_from_json(form))
    if errors:
        raise min(errors, key=_weight)
    return done


def _weight(error: BaseException) -> int:
    if isinstance(error, StaleBatchError):
        return 0
    if not isinstance(error, FailedException):
        return 1
    # While a store or a source is away, it is unknown whether the batch is at fault.
    return 2 if isinstance(error, UnavailableError) else 3
