"""The connections that a process keeps, whatever they lead to."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from trident.backends.pool import Pool


@dataclass(eq=False)
class Line:
    """A connection that only remembers what became of it."""

    place: str
    usable: bool = True
    closed: int = 0

    def is_usable(self) -> bool:
        if self.place == "broken":
            raise OSError("it was cut")
        return self.usable

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def pool() -> Pool[str, Line]:
    return Pool(Line, Line.is_usable)


def kept(pool: Pool[str, Line], place: str = "a") -> Line:
    with pool.lend(place) as line:
        return line


def test_a_connection_is_lent_again_to_its_own_place_only(pool: Pool[str, Line]) -> None:
    line = kept(pool)
    assert kept(pool) is line
    assert kept(pool, "b") is not line


def test_one_that_is_lent_is_nobody_else_s(pool: Pool[str, Line]) -> None:
    with pool.lend("a") as one, pool.lend("a") as other:
        assert one is not other


def test_the_one_that_was_used_last_is_lent_first(pool: Pool[str, Line]) -> None:
    with pool.lend("a") as outer, pool.lend("a"):
        pass
    assert kept(pool) is outer


def test_one_that_failed_is_closed_and_not_kept(pool: Pool[str, Line]) -> None:
    with pytest.raises(OSError, match="cut"), pool.lend("a") as line:
        raise OSError("it was cut")
    assert line.closed == 1
    assert kept(pool) is not line


@pytest.mark.parametrize("place", ["a", "broken"])
def test_one_that_ended_while_it_was_idle_is_replaced(pool: Pool[str, Line], place: str) -> None:
    line = kept(pool, place)
    line.usable = False
    assert kept(pool, place) is not line
    assert line.closed == 1


def test_those_that_are_idle_for_too_long_are_closed(pool: Pool[str, Line]) -> None:
    with pool.lend("a") as first, pool.lend("a") as second:
        pass
    pool.idle_seconds = -1
    newest = kept(pool)
    assert (first.closed, second.closed) == (1, 1)
    assert newest not in (first, second)


def test_those_of_a_busier_time_are_closed_when_another_comes_back(
    pool: Pool[str, Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("trident.backends.pool.monotonic", lambda: now)
    pool.idle_seconds = 45
    with pool.lend("a") as busy:
        with pool.lend("a") as idle:
            pass
        now = 60.0
    assert (busy.closed, idle.closed) == (0, 1)


def test_closing_those_that_are_idle_leaves_those_that_are_lent(pool: Pool[str, Line]) -> None:
    with pool.lend("a") as lent:
        idle = kept(pool)
        pool.close_idle()
        assert (lent.closed, idle.closed) == (0, 1)
    assert kept(pool) is lent


def test_threads_never_share_one(pool: Pool[str, Line]) -> None:
    used: set[int] = set()
    shared = []

    def use() -> None:
        for _ in range(2000):
            with pool.lend("a") as line:
                if id(line) in used:
                    shared.append(line)
                used.add(id(line))
                used.discard(id(line))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not shared


def in_a_child(check: Any) -> None:
    """Run a check in a forked child, and fail where it does."""
    child = os.fork()
    if not child:
        status = 1
        try:
            check()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
class TestFork:
    def test_a_child_neither_uses_nor_closes_what_its_parent_kept(
        self, pool: Pool[str, Line]
    ) -> None:
        line = kept(pool)

        def check() -> None:
            own = kept(pool)
            assert own is not line
            assert kept(pool) is own
            pool.close_idle()
            assert (line.closed, own.closed) == (0, 1)

        in_a_child(check)
        assert kept(pool) is line

    def test_a_child_that_gives_back_what_its_parent_had_lent_leaves_it_alone(
        self, pool: Pool[str, Line]
    ) -> None:
        lending = pool.lend("a")
        line = lending.__enter__()

        def check() -> None:
            lending.__exit__(None, None, None)
            assert kept(pool) is not line
            pool.close_idle()
            assert not line.closed

        in_a_child(check)
        lending.__exit__(None, None, None)

    def test_a_child_that_fails_with_what_its_parent_had_lent_leaves_it_alone(
        self, pool: Pool[str, Line]
    ) -> None:
        lending = pool.lend("a")
        line = lending.__enter__()

        def check() -> None:
            assert not lending.__exit__(OSError, OSError("it was cut"), None)
            assert not line.closed

        in_a_child(check)
        lending.__exit__(None, None, None)
