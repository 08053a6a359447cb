"""A store of several shards, each with a control record of its own: every start goes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import pytest

from tests.batch.counting import CountingEngine, Words, counts, open_runner
from trident.batch.runner import BatchRunner
from trident.errors import RewoundStateError
from trident.log.log import Log, MemoryLog
from trident.states.backing_map import IBackingMap
from trident.states.control import Control, ControlRecord
from trident.states.control_check import Claim, check_record
from trident.states.errors import StateError, StateUnavailableError
from trident.states.maps.factory import OpaqueMap
from trident.states.sharding import least_control, may_spread
from trident.states.values import Token


class Died(BaseException):
    """The driver was killed."""


class Shards:
    """What three shards hold: the records are theirs, the entries are kept together."""

    def __init__(self) -> None:
        self.controls: list[bytes | None] = [None] * 3
        self.entries: dict[bytes, bytes] = {}
        self.killed_after: int | None = None

    def put_control(self, shard: int, record: bytes) -> None:
        if self.killed_after == 0:
            raise Died
        if self.killed_after is not None:
            self.killed_after -= 1
        self.controls[shard] = record


class ShardsMap(IBackingMap):
    """Puts the record shard by shard, the first one last, as a cluster's map does."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return list(map(self._shards.entries.get, keys))

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._shards.entries.update(zip(keys, values, strict=True))

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        if any(control != fence for control in self._shards.controls):
            return False
        self.multiPut(keys, values)
        return True

    def getControl(self) -> bytes | None:
        return least_control(self._shards.controls, "count")

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        found = self._shards.controls
        if not may_spread(found, new, expected, "count"):
            return False
        for shard in (1, 2, 0):
            if found[shard] != new:
                self._shards.put_control(shard, new)
        return True


@pytest.fixture
def shards() -> Shards:
    return Shards()


@pytest.fixture
def log() -> Log:
    return MemoryLog("log")


def state_in(shards: Shards) -> OpaqueMap:
    return OpaqueMap(ShardsMap(shards))


def start(log: Log, shards: Shards, **losses: int) -> BatchRunner:
    return open_runner(log, state_in(shards), accept_loss=losses)


def count(log: Log, shards: Shards, *batches: str) -> None:
    runner = start(log, shards)
    for words in batches:
        runner.run(Words(CountingEngine(state_in(shards)), words))


@pytest.mark.parametrize("killed_after", [0, 1, 2])
@pytest.mark.parametrize("before", ["a", ""], ids=["a batch", "a batch without tuples"])
def test_a_driver_killed_between_two_parts_is_followed_by_another(
    log: Log, shards: Shards, before: str, killed_after: int
) -> None:
    runner = start(log, shards)
    runner.run(Words(CountingEngine(state_in(shards)), "a"))
    runner.run(Words(CountingEngine(state_in(shards)), before))
    shards.killed_after = killed_after
    with pytest.raises(Died):
        runner.run(Words(CountingEngine(state_in(shards)), "a"))
    shards.killed_after = None
    count(log, shards, "a")
    assert counts(state_in(shards), "a") == [3 if before else 2]


def test_a_driver_killed_while_it_makes_the_first_records_leaves_them_to_anybody(
    log: Log, shards: Shards
) -> None:
    shards.killed_after = 1
    with pytest.raises(Died):
        start(log, shards)
    shards.killed_after = None
    count(MemoryLog("another"), shards, "a")
    assert counts(state_in(shards), "a") == [1]


@pytest.mark.parametrize("shard", [0, 1])
def test_the_loss_of_one_shard_may_be_accepted(log: Log, shards: Shards, shard: int) -> None:
    count(log, shards, "a")
    earlier = shards.controls[shard]
    count(log, shards, "a")
    shards.controls[shard] = earlier
    with pytest.raises(RewoundStateError, match=r"accept_loss=\{'count': 2\}"):
        start(log, shards)
    start(log, shards, count=2)
    count(log, shards, "a")
    assert counts(state_in(shards), "a") == [3]


def test_the_loss_of_the_first_shard_s_record_may_be_accepted(log: Log, shards: Shards) -> None:
    count(log, shards, "a")
    shards.controls[0] = None
    start(log, shards, count=1)
    count(log, shards, "a")
    assert counts(state_in(shards), "a") == [2]


def own(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("log", Token(txid, attempt), txid - 1)


IN_A_SHARD = [
    own(1),
    own(1).confirmed(),
    own(1).confirmed().announced(),
    own(2),
    own(2, 1),
    ControlRecord("other", Token(9, 0), 8),
    ControlRecord("other", Token(0, 0)),
    None,
]


@pytest.mark.parametrize(
    "following", [own(2), own(2, 1), own(4)], ids=["next", "retried", "after empty batches"]
)
def test_shards_that_changed_between_two_batches_are_found_as_by_a_driver_that_starts(
    following: ControlRecord,
) -> None:
    def begins(held: Sequence[ControlRecord | None], starts: bool) -> object:
        shards = Shards()
        control = Control(ShardsMap(shards), "count")
        control.begin(own(1))
        assert control.announce(control.ready(own(1)))
        shards.controls = [None if record is None else record.encode() for record in held]
        if starts:
            control = Control(ShardsMap(shards), "count")
        check = partial(check_record, own=following, claim=Claim(Token(1, 0)), name="count")
        try:
            control.begin(following, check)
        except (StateError, StateUnavailableError) as error:
            return str(error), shards.controls
        return shards.controls

    for held in product(IN_A_SHARD, repeat=3):
        assert begins(held, starts=False) == begins(held, starts=True), held
