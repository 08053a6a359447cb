"""A store goes back to any earlier moment, at any moment; two copies of one log take turns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest

from tests.batch.counting import CountingEngine, Words, counts, memory_state, open_runner
from tests.states.abilities import FencedMap, TroubledServer
from trident.batch.errors import BatchFailedError
from trident.batch.runner import BatchRunner
from trident.batch.states import GroupStates
from trident.batch.watchpoints import POINTS, Watcher, watching
from trident.errors import CopiedLogError, LostStateError, LostWritesError, RewoundStateError
from trident.log.entry import LogEntry
from trident.log.log import Log, MemoryLog
from trident.states.control import Change, Check, Control, ControlRecord
from trident.states.errors import StateError
from trident.states.maps.factory import OpaqueMap
from trident.states.values import Token
from trident.testing import fail_at

LOST = (LostStateError, LostWritesError, RewoundStateError)
BATCHES = ("a b", "b", "a", "a b", "b b")
TRUTH = [3, 5]


@dataclass(frozen=True)
class Moment:
    """What the store and the log held."""

    point: str
    entries: dict[bytes, tuple[bytes, int]]
    entry: LogEntry | None


@dataclass
class Life:
    """A word count of five batches, of which every moment is remembered."""

    server: TroubledServer
    log: Log

    @property
    def state(self) -> OpaqueMap:
        return OpaqueMap(FencedMap(self.server))

    def go_on(self) -> None:
        """Start a driver, which does what is left to do."""
        state = self.state
        runner = open_runner(self.log, state)
        while runner.next_txid <= len(BATCHES):
            runner.run(Words(CountingEngine(state), BATCHES[runner.next_txid - 1]))

    def counted(self) -> list[int | None]:
        return counts(self.state, "a b")


def new_life() -> Life:
    return Life(TroubledServer(), MemoryLog("log"))


def continued(entries: dict[bytes, tuple[bytes, int]], entry: LogEntry | None) -> Life:
    """Return what a driver finds that starts with this store and this log."""
    life = new_life()
    life.server.entries.update(entries)
    if entry is not None:
        life.log.append(entry)
    return life


def moments() -> list[Moment]:
    """Every point of every batch, in order."""
    life, found = new_life(), []
    with watching(
        lambda point, token: found.append(
            Moment(f"{point} of {token}", dict(life.server.entries), life.log.newest())
        )
    ):
        life.go_on()
    assert life.counted() == TRUTH
    assert len(found) == len(POINTS) * len(BATCHES)
    return found


def silently_wrong(life: Life) -> bool:
    """Say whether drivers that start one after the other go on as if all were well."""
    for _ in range(3):
        try:
            life.go_on()
        except LOST:
            continue
        return life.counted() != TRUTH
    return False


def test_a_driver_that_died_anywhere_is_followed_by_another() -> None:
    for moment in moments():
        life = continued(moment.entries, moment.entry)
        life.go_on()
        assert life.counted() == TRUTH, moment.point


def test_no_start_on_a_store_of_an_earlier_moment_loses_a_batch_silently() -> None:
    all_moments = moments()
    silent = [
        (earlier.point, later.point)
        for index, later in enumerate(all_moments)
        for earlier in all_moments[:index]
        if silently_wrong(continued(earlier.entries, later.entry))
    ]
    assert not silent


@pytest.mark.slow
def test_no_driver_whose_store_goes_back_loses_a_batch_silently_nor_who_starts_after_it() -> None:
    points = [moment.point for moment in moments()]
    silent = []
    for index, later in enumerate(points):
        for earlier in points[:index]:
            life = new_life()
            with suppress(*LOST), watching(rewinding(life.server, earlier, later)):
                life.go_on()
            if silently_wrong(life):
                silent.append((earlier, later))
    assert not silent


def rewinding(server: TroubledServer, earlier: str, later: str) -> Watcher:
    """Put the server back to what it held at one point when another is reached."""
    kept: dict[bytes, tuple[bytes, int]] = {}

    def watch(point: str, token: Token) -> None:
        if f"{point} of {token}" == earlier:
            kept.update(server.entries)
        elif f"{point} of {token}" == later:
            server.entries.clear()
            server.entries.update(kept)
            server.fail_over()

    return watch


# The loss is accepted, by name.


@pytest.fixture
def lossy() -> Life:
    """A life whose store has lost writes of batch 5, its last."""
    found = moments()
    begun = next(each for each in found if each.point.startswith("after begin of Token(txid=5"))
    return continued(begun.entries, found[-1].entry)


def start(life: Life, **losses: int) -> BatchRunner:
    return open_runner(life.log, life.state, accept_loss=losses)


def test_a_loss_that_is_accepted_by_name_is_gone_on_from(lossy: Life) -> None:
    with pytest.raises(LostWritesError, match=r"accept_loss=\{'count': 5\}"):
        start(lossy)
    runner = start(lossy, count=5)
    runner.run(Words(CountingEngine(lossy.state), "a"))
    assert lossy.counted() == [4, 3]
    start(lossy)


def test_a_record_that_was_read_before_the_driver_before_had_written_it_is_read_once_more(
    lossy: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def look_late(control: Control, record: ControlRecord, check: Check) -> Change | None:
        looks.append(record)
        if len(looks) == 2 and (found := control.read()) is not None:
            control.replace(found.confirmed())
        return behind(control, record, check)

    behind = Control.behind
    monkeypatch.setattr(Control, "behind", look_late)
    start(lossy)
    assert len(looks) == 2


def test_the_log_keeps_that_a_loss_was_accepted(lossy: Life) -> None:
    start(lossy, count=5)
    start(lossy).run(Words(CountingEngine(lossy.state), "a"))
    assert lossy.counted() == [4, 3]


def test_an_accepted_loss_is_of_one_batch_only(lossy: Life) -> None:
    with pytest.raises(LostWritesError):
        start(lossy, count=4)


def test_what_accepts_a_loss_that_never_was_hides_no_later_one() -> None:
    found = moments()
    life = continued(found[-1].entries, found[-1].entry)
    start(life, count=5)
    life.server.entries.clear()
    with pytest.raises(LostStateError):
        start(life)


def test_an_emptied_store_may_be_accepted_too() -> None:
    life = continued({}, moments()[-1].entry)
    start(life, count=5).run(Words(CountingEngine(life.state), "a"))
    assert life.counted() == [1, None]


@pytest.mark.parametrize(("held", "later"), [(4, 1), (2, None)])
def test_a_loss_after_an_accepted_one_is_an_error(held: int, later: int | None) -> None:
    """Also while no batch has begun the state since then."""
    life = new_life()
    kept: dict[int | None, dict[bytes, tuple[bytes, int]]] = {None: {}}
    runner = start(life)
    for txid, words in enumerate(BATCHES, start=1):
        runner.run(Words(CountingEngine(life.state), words))
        kept[txid] = dict(life.server.entries)
    life.server.entries = dict(kept[held])
    start(life, count=5).run(Words(CountingEngine(life.state), ""))
    life.server.entries = dict(kept[later])
    accepting = f"accept_loss={{'count': {held}}}"
    with pytest.raises((RewoundStateError, LostStateError), match=accepting):
        start(life)
    start(life, count=held)


def test_an_acceptance_survives_a_driver_that_dies_before_the_store_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, whole, without_record = MemoryLog("log"), memory_state(), memory_state()
    open_runner(log, whole).run(Words(CountingEngine(whole), "a"))
    for key, entry in whole.backing.entries():
        without_record.backing.multiPut([key], [entry])
    with monkeypatch.context() as patched:
        patched.setattr(GroupStates, "own", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            open_runner(log, without_record, accept_loss={"count": 1})
    runner = open_runner(log, without_record)
    runner.run(Words(CountingEngine(without_record), "a"))
    assert counts(without_record, "a") == [2]


# Two copies of a log.


def test_two_copies_of_a_log_that_take_turns_are_noticed() -> None:
    """Each could take the other's batch for its own attempt."""
    found = moments()
    silent = []
    for copied in found:
        for stopped in found[found.index(copied) :]:
            copy = continued(stopped.entries, copied.entry)
            original = continued({}, stopped.entry)
            original.server = copy.server
            try:
                copy.go_on()
                original.go_on()
            except (CopiedLogError, StateError):
                continue
            if original.counted() != TRUTH:
                silent.append((copied.point, stopped.point))
    assert not silent


def test_a_batch_that_was_empty_in_one_copy_of_a_log_only_is_noticed() -> None:
    """The other copy's values bear the very attempt that this one has committed."""
    original, copy = new_life(), new_life()
    copy.server = original.server
    runner = open_runner(original.log, original.state)
    runner.run(Words(CountingEngine(original.state), "a"))
    copy.log.append(runner.ledger.log.newest())
    open_runner(original.log, original.state).run(Words(CountingEngine(original.state), ""))
    other = open_runner(copy.log, copy.state, retries=0)
    with pytest.raises(BatchFailedError), fail_at("after write", 2):
        other.run(Words(CountingEngine(copy.state), "b"))
    with pytest.raises(CopiedLogError):
        original.go_on()


def test_the_error_about_a_copy_says_so() -> None:
    found = moments()
    copied = next(each for each in found if each.point.startswith("after commit of Token(txid=2"))
    copy = continued(found[-1].entries, copied.entry)
    with pytest.raises(CopiedLogError, match=r"another copy of this checkpoint.*batch 5"):
        copy.go_on()
