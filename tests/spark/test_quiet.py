"""Who keeps Spark's errors from being logged, and for how long."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from trident.spark import quiet as module
from trident.spark.quiet import Quiet
from trident.spark.versions import loggers_of_errors

if not loggers_of_errors():
    pytest.skip("Spark 3.5 tells of errors by no logger of Python's", allow_module_level=True)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Quiet:
    monkeypatch.setattr(module, "access_to", lambda session: SimpleNamespace(jvm=None))
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: default))
    return Quiet(session)


def filters() -> int:
    return sum(len(logger.filters) for logger in loggers_of_errors())


def in_another_thread(*calls: Any) -> None:
    thread = threading.Thread(target=lambda: [call() for call in calls])
    thread.start()
    thread.join()


def test_it_ends_when_the_last_thread_has_ended_it(quiet: Quiet) -> None:
    before = filters()
    quiet.on()
    in_another_thread(quiet.on, quiet.off)
    assert filters() > before
    quiet.off()
    assert filters() == before


def test_whoever_closes_it_ends_it_for_a_thread_that_has_failed(quiet: Quiet) -> None:
    before = filters()
    in_another_thread(quiet.on)
    quiet.close()
    assert filters() == before
