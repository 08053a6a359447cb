"""Of calls that fail each reason is logged once a second and function."""

from __future__ import annotations

import asyncio
import logging

import pytest

from trident.drpc.errors import DRPCInternalError, DRPCUnavailableError
from trident.server import failure_log
from trident.server.failure_log import FailureLog, log_failure


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(failure_log, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def fail(log: FailureLog, function: str = "words", reason: str = "OSError") -> None:
    log.log(logging.WARNING, function, reason, f"{function} failed")


def test_a_reason_is_logged_once_a_second_with_how_many_were_left_out(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log = FailureLog()
    for _ in range(1000):
        fail(log)
    assert caplog.messages == ["words failed"]
    clock.now += 1
    fail(log)
    fail(log)
    assert caplog.messages[1:] == ["words failed (999 more of this reason were left out)"]


def test_another_function_and_another_reason_are_logged_at_once(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log = FailureLog()
    for function, reason in (("words", "OSError"), ("top", "OSError"), ("words", "KeyError")):
        fail(log, function, reason)
        fail(log, function, reason)
    assert caplog.messages == ["words failed", "top failed", "words failed"]


def test_what_is_left_out_at_last_is_told_after_the_second(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_log, "_SECONDS", 0.02)
    told = asyncio.Event()

    class Telling(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if "more" in record.getMessage():
                told.set()
            return True

    async def failing() -> None:
        log = FailureLog()
        for _ in range(5):
            fail(log)
        await asyncio.wait_for(told.wait(), 30)

    telling = Telling()
    logging.getLogger("trident").addFilter(telling)
    try:
        asyncio.run(failing())
    finally:
        logging.getLogger("trident").removeFilter(telling)
    assert caplog.messages[-1].startswith("words: OSError (")
    assert caplog.messages[-1].endswith("more of this reason were left out)")


def test_what_was_said_meanwhile_is_not_said_again(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log = FailureLog()
    for _ in range(2):
        fail(log)
    clock.now += 1
    for _ in range(2):
        fail(log)
    log._log_left_out(logging.WARNING, ("words", "OSError"))  # of the first second
    assert len(caplog.messages) == 2
    clock.now += 1
    log._log_left_out(logging.WARNING, ("words", "OSError"))
    assert caplog.messages[2:] == ["words: OSError (1 more of this reason were left out)"]


def test_what_is_known_of_reasons_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_log, "_MOST_KNOWN", 10)
    log = FailureLog()
    for number in range(100):
        fail(log, f"f{number}")
    assert len(log._known) == 10


def test_calls_that_fail_are_logged_so(caplog: pytest.LogCaptureFixture) -> None:
    for error in (DRPCUnavailableError, DRPCInternalError):
        for args in range(50):
            log_failure(error("often", str(args), "the store is away"))
    for number in range(50):
        log_failure(ZeroDivisionError(number))
    assert len(caplog.records) == 3
