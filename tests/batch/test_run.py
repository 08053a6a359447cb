"""The handle of a run: its groups together, its end, its failure."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Self

import pytest

from trident.api.run import Run
from trident.batch.group_run import GroupRun
from trident.batch.progress import BatchProgress
from trident.spouts.feeder import FeedError


class Group(GroupRun):
    """A group that ends when it is told to."""

    asked_all = False

    def start(self) -> Self:
        return self

    def request_stop(self) -> None:
        if self.isActive:
            self.ended()

    def processAllAvailable(self) -> None:
        self.asked_all = True
        self._raise_failure()


def test_a_run_is_the_sum_of_its_groups() -> None:
    first, second = Group("a"), Group("b")
    run = Run([first, second])
    assert run.isActive
    assert run.status == {"a": "running", "b": "running"}
    assert run.lastProgress is None
    second.progressed(BatchProgress("b", 1, attempts=1))
    assert run.lastProgress == second.lastProgress
    run.processAllAvailable()
    assert first.asked_all
    assert second.asked_all
    first.ended()
    assert run.isActive
    assert not run.awaitTermination(0)
    second.ended()
    assert run.awaitTermination(0)
    assert not run.isActive
    assert run.groups["a"] is first


def test_leaving_the_block_stops_and_closes_once() -> None:
    calls: list[str] = []
    group = Group("a")
    with Run(
        [group], on_end=lambda: calls.append("end"), on_close=lambda: calls.append("close")
    ) as run:
        assert calls == []
    run.stop()
    assert calls == ["end", "close"]
    assert not group.isActive


def test_the_checkpoint_is_free_when_the_wait_for_the_end_returns() -> None:
    held = threading.Event()
    group = Group("a")
    run = Run([group], on_end=held.set)
    threading.Thread(target=group.ended).start()
    assert run.awaitTermination(60)
    assert held.is_set()


def test_groups_that_ended_before_there_was_a_handle_count() -> None:
    group, calls = Group("a"), list[str]()
    group.ended()
    run = Run([group], on_end=lambda: calls.append("end"))
    assert run.awaitTermination(60)
    assert calls == ["end"]


def test_a_run_without_groups_has_ended() -> None:
    assert Run([]).awaitTermination(60)


def test_the_first_failure_is_raised_to_who_waits_while_other_groups_run() -> None:
    first, second = Group("a"), Group("b")
    with Run([first, second]) as run:
        threading.Thread(target=second.ended, args=[KeyError("x")]).start()
        with pytest.raises(KeyError):
            run.awaitTermination(60)
        assert first.isActive
        assert isinstance(run.exception(), KeyError)
        with pytest.raises(KeyError):
            run.processAllAvailable()
    assert not first.isActive


def test_a_failure_that_nobody_has_seen_is_raised_at_the_end_of_the_block() -> None:
    group = Group("a")
    with pytest.raises(KeyError), Run([group]):
        group.ended(KeyError("x"))


def fail_beside(group: Group) -> None:
    with Run([group]):
        group.ended(KeyError("x"))
        raise ZeroDivisionError


def test_the_blocks_own_exception_goes_first() -> None:
    with pytest.raises(ZeroDivisionError):
        fail_beside(Group("a"))


def abandoned(group: Group) -> None:
    with Run([group]):
        group.ended(KeyError("x"))
        raise FeedError(1, True)


def test_what_follows_from_a_failure_goes_behind_it() -> None:
    with pytest.raises(KeyError) as caught:
        abandoned(Group("a"))
    assert isinstance(caught.value.__context__, FeedError)


def test_stop_does_not_raise() -> None:
    group = Group("a")
    run = Run([group])
    group.ended(KeyError("x"))
    run.stop()
    assert run.status == {"a": "failed"}


def interrupted_wait(group: Group) -> None:
    interrupt = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT])
    with Run([group]) as run:
        interrupt.start()
        run.awaitTermination(60)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler: who is started in the background may be told to ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_wait_stops_the_run() -> None:
    group = Group("a")
    with pytest.raises(KeyboardInterrupt):
        interrupted_wait(group)
    assert group.status == "stopped"


class Stuck(Group):
    """A group whose batch doesn't end; Ctrl-C is pressed again when it is asked to."""

    def request_stop(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        self.awaitTermination(60)


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_does_not_wait_for_the_batch() -> None:
    group = Stuck("a")
    with pytest.raises(KeyboardInterrupt):
        interrupted_wait(group)
    assert group.isActive


class Failing(Group):
    """A group whose last batch fails."""

    def request_stop(self) -> None:
        if self.isActive:
            self.ended(KeyError("x"))


@pytest.mark.usefixtures("interruptible")
def test_what_the_last_batch_fails_with_is_told_after_an_interrupt() -> None:
    with pytest.raises(KeyError):
        interrupted_wait(Failing("a"))
