"""A store of several parts, each with a control record of its own: every start goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.batch.counting import CountingEngine, Words, counts, open_runner
from trident.batch.runner import BatchRunner
from trident.errors import RewoundStateError
from trident.log.log import Log, MemoryLog
from trident.states.backing_map import IBackingMap
from trident.states.opaque import OpaqueMap
from trident.states.spread_control import least_control, may_spread


class Died(BaseException):
    """The driver was killed."""


class Parts:
    """What three parts hold: the records are theirs, the entries are kept together."""

    def __init__(self) -> None:
        self.controls: list[bytes | None] = [None] * 3
        self.entries: dict[bytes, bytes] = {}
        self.killed_after: int | None = None

    def put_control(self, part: int, record: bytes) -> None:
        if self.killed_after == 0:
            raise Died
        if self.killed_after is not None:
            self.killed_after -= 1
        self.controls[part] = record


class PartsMap(IBackingMap):
    """Puts the record part by part, the first one last, as a cluster's map does."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return list(map(self._parts.entries.get, keys))

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._parts.entries.update(zip(keys, values, strict=True))

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        if any(control != fence for control in self._parts.controls):
            return False
        self.multiPut(keys, values)
        return True

    def getControl(self) -> bytes | None:
        return least_control(self._parts.controls, "count")

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        found = self._parts.controls
        if not may_spread(found, new, expected, "count"):
            return False
        for part in (1, 2, 0):
            if found[part] != new:
                self._parts.put_control(part, new)
        return True


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def log() -> Log:
    return MemoryLog("log")


def state_in(parts: Parts) -> OpaqueMap:
    return OpaqueMap(PartsMap(parts))


def start(log: Log, parts: Parts, **losses: int) -> BatchRunner:
    return open_runner(log, state_in(parts), accept_loss=losses)


def count(log: Log, parts: Parts, *batches: str) -> None:
    runner = start(log, parts)
    for words in batches:
        runner.run(Words(CountingEngine(state_in(parts)), words))


@pytest.mark.parametrize("killed_after", [0, 1, 2])
@pytest.mark.parametrize("before", ["a", ""], ids=["a batch", "a batch without tuples"])
def test_a_driver_killed_between_two_parts_is_followed_by_another(
    log: Log, parts: Parts, before: str, killed_after: int
) -> None:
    runner = start(log, parts)
    runner.run(Words(CountingEngine(state_in(parts)), "a"))
    runner.run(Words(CountingEngine(state_in(parts)), before))
    parts.killed_after = killed_after
    with pytest.raises(Died):
        runner.run(Words(CountingEngine(state_in(parts)), "a"))
    parts.killed_after = None
    count(log, parts, "a")
    assert counts(state_in(parts), "a") == [3 if before else 2]


def test_a_driver_killed_while_it_makes_the_first_records_leaves_them_to_anybody(
    log: Log, parts: Parts
) -> None:
    parts.killed_after = 1
    with pytest.raises(Died):
        start(log, parts)
    parts.killed_after = None
    count(MemoryLog("another"), parts, "a")
    assert counts(state_in(parts), "a") == [1]


@pytest.mark.parametrize("part", [0, 1])
def test_the_loss_of_one_part_may_be_accepted(log: Log, parts: Parts, part: int) -> None:
    count(log, parts, "a")
    earlier = parts.controls[part]
    count(log, parts, "a")
    parts.controls[part] = earlier
    with pytest.raises(RewoundStateError, match=r"accept_loss=\{'count': 2\}"):
        start(log, parts)
    start(log, parts, count=2)
    count(log, parts, "a")
    assert counts(state_in(parts), "a") == [3]


def test_the_loss_of_the_first_part_s_record_may_be_accepted(log: Log, parts: Parts) -> None:
    count(log, parts, "a")
    parts.controls[0] = None
    start(log, parts, count=1)
    count(log, parts, "a")
    assert counts(state_in(parts), "a") == [2]
