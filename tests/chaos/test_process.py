"""Processes that are stopped, continued and killed, and how they are told to have ended."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from trident.batch.watchpoints import reached
from trident.chaos.kafka_words import KafkaWords
from trident.chaos.process import STARTING, DriverEnd, Fate, Life, Process
from trident.chaos.record import Record
from trident.states.errors import StaleBatchError, StateUnavailableError
from trident.states.values import Token

# Threads of the tests' own process take no part in what is forked here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def passing(*points: str) -> None:
    for point in points:
        reached(point, Token(1, 0))


def lived(folder: Path, fate: Fate, *points: str) -> tuple[Life, Process]:
    life = Life(1, fate, folder / "mark")
    return life, Process(lambda: passing(*points), folder / "log", life)


def test_a_driver_is_killed_at_its_point_and_the_phase_is_known(tmp_path: Path) -> None:
    fate = Fate("before write", passes=1)
    life, process = lived(tmp_path, fate, "before write", "after write", "before write")
    assert life.phase in (STARTING, "before write", "after write")
    assert process.wait(30)
    assert process.outcome is DriverEnd.KILLED
    assert life.phase == "before write"


def test_a_driver_that_stops_itself_can_be_continued(tmp_path: Path) -> None:
    fate = Fate("before write", ends=signal.SIGSTOP)
    life, process = lived(tmp_path, fate, "before write", "after write")
    assert process.wait(30, or_stopped=True)
    assert process.stopped
    assert process.outcome is None
    process.resume()
    assert process.wait(30)
    assert process.outcome is DriverEnd.FINISHED
    assert life.phase == "after write"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (StaleBatchError(Token(1, 0), Token(1, 1)), DriverEnd.OVERTAKEN),
        (StateUnavailableError("redis", "it is away"), DriverEnd.GAVE_UP),
        (ValueError("of the user's"), DriverEnd.FAILED),
    ],
)
def test_how_a_driver_ended_is_told_by_its_error(
    tmp_path: Path, error: Exception, outcome: DriverEnd
) -> None:
    def fail() -> None:
        raise error

    process = Process(fail, tmp_path / "log")
    assert process.wait(30)
    assert process.outcome is outcome
    if outcome is DriverEnd.FAILED:
        assert process.problem == "ValueError: of the user's"


def test_what_is_compared_may_read_a_topic_of_a_broker_that_is_hurt() -> None:
    words = KafkaWords(Record("1", 3), 9, "here:9092", [lambda: "broker paused"])
    assert len({words, KafkaWords(Record("1", 3), 9, "here:9092")}) == 1
