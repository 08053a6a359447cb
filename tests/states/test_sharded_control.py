"""One control record in a store of several shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from trident.backends.memory import MemoryMap
from trident.errors import CorruptStateError
from trident.states import ControlRecord, Token
from trident.states.control import Control, Move
from trident.states.sharding import least_control, may_spread
from trident.states.values import StateType


def record(txid: int, attempt: int = 0, log_id: str = "log") -> ControlRecord:
    return ControlRecord(log_id, Token(txid, attempt), txid - 1)


BEFORE = record(4).announced().encode()
BEGUN = record(5).encode()
RETRIED = record(5, 1).encode()
READY = record(5).confirmed().encode()
ANNOUNCED = record(5).confirmed().announced().encode()
NEXT = record(6).encode()
FOREIGN = record(9, log_id="other").encode()
PLANNED = replace(record(5), plan="d1")
WAITING = record(1, log_id="other").waiting().encode()


@pytest.mark.parametrize(
    ("found", "least"),
    [
        pytest.param([None, None, None], None, id="never begun"),
        pytest.param([BEGUN] * 3, BEGUN, id="all alike"),
        pytest.param([None, BEGUN, None], None, id="creation that stopped in the middle"),
        pytest.param([BEFORE, BEGUN, BEFORE], BEFORE, id="begin that stopped in the middle"),
        pytest.param([RETRIED, BEGUN, RETRIED], BEGUN, id="retry that stopped in the middle"),
        pytest.param([BEGUN, READY, READY], BEGUN, id="confirmation that stopped"),
        pytest.param([READY, BEGUN, READY], BEGUN, id="a shard that lost the end of a batch"),
        pytest.param([READY, ANNOUNCED, READY], READY, id="announcement that stopped"),
        pytest.param([NEXT, NEXT, BEFORE], BEFORE, id="a shard that went back"),
    ],
)
def test_the_least_record_is_read(found: Sequence[bytes | None], least: bytes | None) -> None:
    assert least_control(found, "counts") == least


def test_a_part_without_a_record_has_lost_it() -> None:
    with pytest.raises(CorruptStateError, match="counts .* of its 3 shards these have none: 1, 2"):
        least_control([BEGUN, None, None], "counts")


@pytest.mark.parametrize(
    ("found", "new", "expected"),
    [
        pytest.param([None] * 3, BEGUN, None, id="creation"),
        pytest.param([None, BEGUN, None], BEGUN, None, id="creation that goes on"),
        pytest.param([None, BEGUN, None], RETRIED, None, id="creation that begins again"),
        pytest.param([BEFORE] * 3, BEGUN, BEFORE, id="begin"),
        pytest.param([BEFORE, BEGUN, BEGUN], RETRIED, BEFORE, id="retry of half a begin"),
        pytest.param([BEGUN] * 3, READY, BEGUN, id="confirmation"),
        pytest.param([BEGUN, READY, READY], RETRIED, BEGUN, id="retry of half a confirmation"),
        pytest.param([READY] * 3, ANNOUNCED, READY, id="announcement"),
        pytest.param([READY, ANNOUNCED, READY], ANNOUNCED, READY, id="announcement that goes on"),
        pytest.param([READY, ANNOUNCED, READY], NEXT, READY, id="begin after half of one"),
        pytest.param([FOREIGN] * 3, record(10).encode(), FOREIGN, id="another log takes over"),
        pytest.param([None, WAITING, None], BEGUN, None, id="creation after another that stopped"),
    ],
)
def test_a_record_may_be_put(
    found: Sequence[bytes | None], new: bytes, expected: bytes | None
) -> None:
    assert may_spread(found, new, expected, "counts")


@pytest.mark.parametrize(
    ("found", "new", "expected"),
    [
        pytest.param([BEGUN] * 3, ANNOUNCED, BEFORE, id="another than expected"),
        pytest.param([BEGUN] * 3, ANNOUNCED, None, id="not absent"),
        pytest.param([None] * 3, ANNOUNCED, BEGUN, id="absent"),
        pytest.param([BEGUN, RETRIED, BEGUN], ANNOUNCED, BEGUN, id="a shard begun by a later one"),
        pytest.param([BEFORE, NEXT, BEFORE], BEGUN, BEFORE, id="a shard of the next batch"),
    ],
)
def test_a_record_must_not_be_put(
    found: Sequence[bytes | None], new: bytes, expected: bytes | None
) -> None:
    assert not may_spread(found, new, expected, "counts")


@pytest.mark.parametrize("left", [PLANNED, PLANNED.confirmed()])
def test_a_shard_that_has_begun_by_another_plan_is_not_begun_over(left: ControlRecord) -> None:
    found = [BEFORE, left.encode(), BEFORE]
    with pytest.raises(CorruptStateError, match="begun batch 5 with tuples that this checkpoint"):
        may_spread(found, record(5, 1).encode(), BEFORE, "counts")
    assert may_spread(found, replace(record(5, 1), plan="d1").encode(), BEFORE, "counts")
    assert may_spread(found, record(6).encode(), BEFORE, "counts")


def test_a_plan_that_every_shard_has_begun_is_for_the_run_to_accept() -> None:
    found = [PLANNED.encode(), PLANNED.confirmed().encode()]
    assert may_spread(found, record(5, 1).encode(), PLANNED.encode(), "counts")


def test_what_another_log_left_is_not_created_over() -> None:
    with pytest.raises(CorruptStateError, match="emptied only partly"):
        may_spread([None, FOREIGN, None], BEGUN, None, "counts")


class TwoShards(MemoryMap):
    """One with a second copy of the record."""

    second: bytes | None = None

    def getControl(self) -> bytes | None:
        return least_control([super().getControl(), self.second], "counts")

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        if not may_spread([super().getControl(), self.second], new, expected, "counts"):
            return False
        self.second = new
        return super().putControl(new, super().getControl())


def test_a_swap_that_has_reached_one_shard_is_no_lost_write_of_the_run_that_goes_on() -> None:
    backing = TwoShards("swapped")
    control = Control(backing)
    control.begin(record(5))
    moved = record(5).moved(Move("elsewhere", StateType.OPAQUE)).encode()
    ready = control.ready(record(5))
    backing.second = moved
    assert not control.announce(ready)
    control.begin(record(6))
    assert backing.second == record(6).encode()
