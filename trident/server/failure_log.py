"""What a server logs of calls that fail: one message a second for each function and reason.

One store may fail thousands of callers, and their requests must not fill a disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from threading import Lock
from time import monotonic

from trident.drpc.errors import DRPCInternalError, DRPCUnavailableError
from trident.wire.errors import public_error

_logger = logging.getLogger("trident")
_SECONDS = 1.0
_MOST_KNOWN = 1_000
"""For how many functions and reasons the time of the last message is kept."""


class FailureLog:
    """Logs failures, and the number of those that it leaves out; in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    def log(
        self,
        level: int,
        function: str,
        reason: str,
        message: object,
        *,
        cause: BaseException | None = None,
    ) -> None:
        """Log a failure, or count it.

        One message of a function and reason is logged in a second. The log has `cause` with its
        traceback.
        """
        key = function, reason
        with self._lock:
            now = monotonic()
            logged, left_out = self._known.get(key, (-_SECONDS, 0))
            is_due = now - logged >= _SECONDS
            self._known[key] = (now, 0) if is_due else (logged, left_out + 1)
            self._known.move_to_end(key)
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        if is_due:
            _logger.log(level, "%s%s", message, _more(left_out), exc_info=cause)
        elif not left_out:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # the next message says how many were left out
            loop.call_later(_SECONDS - (now - logged), self._log_left_out, level, key)

    def forget(self) -> None:
        with self._lock:
            self._known.clear()

    def _log_left_out(self, level: int, key: tuple[str, str]) -> None:
        with self._lock:
            now = monotonic()
            logged, left_out = self._known.get(key, (now, 0))
            if not left_out or now - logged < _SECONDS / 2:
                return  # a message that was logged meanwhile has the number
            self._known[key] = now, 0
        function, reason = key
        _logger.log(level, "%s: %s%s", function, reason, _more(left_out))


FAILURES = FailureLog()
"""Of this process."""


def log_failure(error: Exception) -> None:
    """Log the part of an error that clients don't see."""
    reason = type(error.__cause__ or error).__name__
    if isinstance(error, DRPCUnavailableError):
        FAILURES.log(logging.WARNING, error.function, reason, error)
    elif isinstance(error, DRPCInternalError):
        FAILURES.log(logging.ERROR, error.function, reason, error, cause=error.__cause__)
    elif public_error(error).status == 500:
        FAILURES.log(logging.ERROR, "", reason, "a request could not be answered", cause=error)


def _more(left_out: int) -> str:
    return f" ({left_out:,} more of this reason were left out)" if left_out else ""
