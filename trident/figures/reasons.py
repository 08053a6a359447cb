"""Why an attempt failed, as one of a few reasons that can be counted."""

from __future__ import annotations

from trident.batch.errors import BatchFailedError, OutageError
from trident.errors import SourceUnavailableError
from trident.log.errors import LogConflictError, LogError, LogUnavailableError, TakenOverError
from trident.operation_error import OperationError, user_frames
from trident.states.errors import (
    CopiedLogError,
    FailedException,
    StaleBatchError,
    StateError,
    UnavailableError,
)

REASONS = {
    "failed": "a `FailedException`: the batch is tried again, as often as `retries` allows",
    "store_unavailable": "a store is away, or gave no certain answer: the batch waits for it",
    "source_unavailable": "what a spout reads is away: the batch waits for it",
    "log_unavailable": "the log's disk or store is away: the batch waits for it",
    "overtaken": "another run has begun a later attempt: this one ends",
    "contradicted": "a store, or the log, holds what can't be: the run ends",
    "error": "anything else, such as a bug in an operation: the run ends",
}
"""What each reason means. There are no others, so they can be labels of metrics."""

_LONGEST = 500


def reason_of(error: BaseException) -> str:
    """Return why an attempt, or a group, failed."""
    match error:
        case OutageError() | BatchFailedError() if error.__cause__ is not None:
            return reason_of(error.__cause__)
        case SourceUnavailableError():
            return "source_unavailable"
        case UnavailableError():
            return "store_unavailable"
        case LogUnavailableError():
            return "log_unavailable"
        case FailedException():
            return "failed"
        case StaleBatchError() | LogConflictError() | TakenOverError() | CopiedLogError():
            return "overtaken"
        case StateError() | LogError():
            return "contradicted"
    return "error"


def class_of(error: BaseException) -> str:
    """Return the name of an error's class; of an operation's error that of the user's exception."""
    if isinstance(error, OperationError):
        if error.cause is None:  # it comes from another process
            return error.error.partition(":")[0].strip()
        error = error.cause
    return type(error).__name__


def message_of(error: BaseException) -> str:
    """Return an error's text, shortened; of an operation's error what it raised, and no tuple."""
    try:
        text = error.error if isinstance(error, OperationError) else str(error)
    except Exception:  # the text may be made by a user's code, and the callers must not fail
        text = ""
    text = text.strip() or type(error).__name__
    return text if len(text) < _LONGEST else text[:_LONGEST] + "…"


def frame_of(error: BaseException) -> str | None:
    """Return the user's innermost frame, in one or two lines; None if no frame is a user's."""
    frames = error.frames if isinstance(error, OperationError) else user_frames(error)
    return frames[-1].strip() if frames else None
