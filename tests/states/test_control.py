"""What the control record's keeper notices between two batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.states.abilities import FencedMap, PlainMap, TroubledServer
from trident.errors import (
    CopiedLogError,
    CorruptStateError,
    LostPlanError,
    LostStateError,
    LostWritesError,
    RewoundStateError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
)
from trident.states import Control, ControlRecord, StateType, Token
from trident.states.control import BURNT, GIVEN_BACK, Deciding, Move
from trident.states.control_check import Claim, check_record
from trident.states.keys import CONTROL_KEY
from trident.states.testing.unlucky import UnluckyStore


def record(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("log", Token(txid, attempt), txid - 1)


def begun(server: TroubledServer) -> Control:
    """A control whose batch 1 is begun."""
    control = Control(FencedMap(server), "counts")
    control.begin(record(1))
    return control


def confirmed(server: TroubledServer) -> Control:
    """A control whose batch 1 is begun and confirmed."""
    control = begun(server)
    control.ready(record(1))
    return control


class Forgetful(TroubledServer):
    """A server whose confirmed writes may be lost as well."""

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("once", [None, Deciding("ä", "a_2", StateType.TRANSACTIONAL)])
def test_a_version_that_knows_no_moves_refuses_a_record_with_one(once: Deciding | None) -> None:
    moved = record(5).moved(Move("b_2", StateType.TRANSACTIONAL, once))
    told = moved.encode()
    assert ControlRecord.decode(told) == pickle.loads(pickle.dumps(moved)) == moved
    assert told.startswith(b'{"format":2,')
    assert record(5).encode().startswith(b'{"format":1,')
    with pytest.raises(CorruptStateError, match="format 1, this version reads 2"):
        ControlRecord.decode(told.replace(b'"format":2', b'"format":1'))


def test_a_fail_over_before_ready_fails_the_attempt() -> None:
    server = TroubledServer()
    control = begun(server)
    server.fail_over()
    with pytest.raises(StateUnavailableError, match="counts: the store restarted"):
        control.ready(record(1))


def test_a_begin_that_is_lost_before_ready_fails_the_attempt() -> None:
    server = TroubledServer()
    control = begun(server)
    server.entries.clear()
    with pytest.raises(StateUnavailableError, match="counts: the store restarted or lost writes"):
        control.ready(record(1))
    assert control.read() is None


def test_a_fail_over_after_which_only_the_mark_is_accepted_fails_the_attempt() -> None:
    """The server that took over has the begin and not what was written after it."""

    class TakenOver(FencedMap):
        def putControl(self, new: bytes, expected: bytes | None) -> bool:
            if expected == record(1).encode():
                server.fail_over()
            return super().putControl(new, expected)

    server = TroubledServer()
    control = Control(TakenOver(server), "counts")
    control.begin(record(1))
    with pytest.raises(StateUnavailableError, match="counts: the store restarted"):
        control.ready(record(1))


def test_a_later_attempt_is_never_begun_over() -> None:
    server = TroubledServer()
    Control(FencedMap(server)).begin(record(2))
    with pytest.raises(StaleBatchError):
        Control(FencedMap(server)).begin(record(1))


def test_an_attempt_that_begins_while_another_one_looks_is_not_begun_over() -> None:
    server = TroubledServer()
    begun(server)

    def look(found: ControlRecord | None) -> None:
        Control(FencedMap(server)).begin(record(1, 2))

    with pytest.raises(StateUnavailableError, match="changed while the batch began"):
        Control(FencedMap(server)).begin(record(1, 1), look)


def test_a_fail_over_that_kept_everything_after_ready_costs_the_next_batch_an_attempt() -> None:
    server = TroubledServer()
    control = confirmed(server)
    server.fail_over()
    assert control.announce(record(1).confirmed())
    control.begin(record(2))
    with pytest.raises(StateUnavailableError, match="the store restarted or lost writes"):
        control.ready(record(2))
    control.begin(record(2, 1))
    assert control.announce(control.ready(record(2, 1)))


def test_a_batch_that_begins_where_this_run_left_the_state_takes_one_call() -> None:
    calls: list[str] = []

    class Counted(FencedMap):
        def getControl(self) -> bytes | None:
            calls.append("get")
            return super().getControl()

        def putControl(self, new: bytes, expected: bytes | None) -> bool:
            done = super().putControl(new, expected)
            calls[:] = ["put"]
            return done

        def incarnation(self) -> str:
            calls.append("incarnation")
            return super().incarnation()

    control = Control(Counted(TroubledServer()), "counts")
    control.begin(record(1))
    assert control.announce(control.ready(record(1)))
    calls.clear()
    control.begin(record(2))
    assert calls == ["put"]


def test_a_state_that_is_not_as_this_run_left_it_is_judged_before_it_is_begun() -> None:
    server = Forgetful()
    control = confirmed(server)
    assert control.announce(record(1).confirmed())
    server.fail_over(lost=1)
    found: list[ControlRecord | None] = []
    control.begin(record(2), found.append)
    assert found == [record(1).confirmed()]
    assert control.announce(control.ready(record(2)))  # by the server that is there now


def put(record: ControlRecord) -> Callable[[TroubledServer], object]:
    return lambda server: FencedMap(server).multiPut([CONTROL_KEY], [record.encode()])


MEANWHILE: list[Any] = [
    pytest.param(lambda server: None, id="nothing"),
    pytest.param(lambda server: server.fail_over(), id="a fail-over"),
    *(
        pytest.param(lambda server, lost=lost: server.fail_over(lost), id=f"{lost} writes lost")
        for lost in (1, 2, 3)
    ),
    pytest.param(lambda server: server.entries.clear(), id="emptied"),
    pytest.param(put(record(1).confirmed()), id="restored, with the announcement missed"),
    pytest.param(put(record(1)), id="restored, with writes lost"),
    pytest.param(put(record(0).announced()), id="restored to the batch before"),
    pytest.param(put(record(1, 1).confirmed().announced()), id="another copy of the log"),
    pytest.param(put(record(2)), id="another state, or another copy at the same attempt"),
    pytest.param(put(record(2, 1)), id="a later attempt"),
    pytest.param(put(record(3)), id="a later batch"),
    pytest.param(put(replace(record(1).announced(), log_id="other")), id="another log"),
    pytest.param(put(replace(record(1).waiting(), log_id="other")), id="another log that waits"),
    pytest.param(put(replace(record(1).announced(), log_id=GIVEN_BACK)), id="given back"),
]


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("following", [record(2), record(4)], ids=["next", "after empty batches"])
@pytest.mark.parametrize("kind", [FencedMap, PlainMap])
def test_what_happened_between_two_batches_is_found_as_by_a_driver_that_starts(
    kind: type[PlainMap], following: ControlRecord, meanwhile: Callable[[TroubledServer], object]
) -> None:
    def begins(starts: bool) -> object:
        server = Forgetful()
        control = Control(kind(server), "counts")
        control.begin(record(1))
        assert control.announce(control.ready(record(1)))
        meanwhile(server)
        if starts:
            control = Control(kind(server), "counts")
        check = partial(check_record, own=following, claim=Claim(Token(1, 0)), name="counts")
        try:
            control.begin(following, check)
        except StateError as error:
            return str(error)
        return control.read()

    assert begins(starts=False) == begins(starts=True)


def test_a_fail_over_that_lost_the_last_write_after_ready_stops_the_run() -> None:
    server = Forgetful()
    control = confirmed(server)
    server.fail_over(lost=1)
    with pytest.raises(LostWritesError, match="state counts lost writes of batch 1, which is comm"):
        control.announce(record(1).confirmed())


def test_a_record_that_vanished_before_the_announcement_stops_the_run() -> None:
    server = TroubledServer()
    control = confirmed(server)
    server.entries.clear()
    with pytest.raises(LostStateError, match="batch 1"):
        control.announce(record(1).confirmed())


def test_an_announcement_that_was_stored_without_an_answer_counts() -> None:
    server = TroubledServer()
    confirmed(server)
    unlucky = UnluckyStore(lambda: FencedMap(server))
    control = Control(unlucky.open(), "counts")
    unlucky.lose_answer()
    with pytest.raises(StateUnavailableError):
        control.announce(record(1).confirmed())
    assert control.announce(record(1).confirmed())


def test_two_states_in_one_place_are_noticed_when_the_second_begins() -> None:
    server = TroubledServer()
    Control(FencedMap(server), "counts").begin(record(1))
    found = "state sums: attempt 0 of batch 1 has begun there already.*another prefix.*another copy"
    with pytest.raises(StateError, match=found):
        Control(FencedMap(server), "sums").begin(record(1))


# What a log that has committed (5, 1) and reserved (6, 1) makes of the record that it finds.

OWN = ControlRecord("log", Token(6, 1), 5, {5: 1})
LISTED = Token(5, 1)


def found(txid: int, attempt: int, committed: int = 4, **retried: int) -> ControlRecord:
    known = {int(name[1:]): kept for name, kept in retried.items()}
    return ControlRecord("log", Token(txid, attempt), committed, known)


judged = partial(check_record, own=OWN, claim=Claim(LISTED), name="counts")


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(found(5, 1).confirmed(), id="its announcement was missed"),
        pytest.param(found(5, 1).confirmed().announced(), id="it was announced"),
        pytest.param(found(6, 0, 5, _5=1), id="an attempt after it has begun"),
        pytest.param(found(6, 0, 5, _5=1).confirmed(), id="an attempt after it was ready"),
    ],
)
def test_a_driver_that_died_without_a_loss_is_followed_by_another(record: ControlRecord) -> None:
    judged(record)


def test_a_committed_batch_that_is_only_begun_has_lost_writes() -> None:
    with pytest.raises(LostWritesError, match=r"batch 5.*accept_loss=\{'counts': 5\}"):
        judged(found(5, 1))


def test_a_record_that_does_not_say_whether_it_is_ready_is_refused() -> None:
    stored = b'{"format":1,"lineage":"log","token":[5,1],"committed":4,"exceptions":[]}'
    with pytest.raises(CorruptStateError, match="'ready'"):
        ControlRecord.decode(stored)


def test_a_record_before_the_committed_batch_is_rewound() -> None:
    with pytest.raises(RewoundStateError, match=r"batch 5.*accept_loss=\{'counts': 5\}"):
        judged(found(5, 0))


PLANNED = replace(found(6, 0, 5, _5=1), plan="d1")
transactional = partial(
    check_record, claim=Claim(LISTED, kind=StateType.TRANSACTIONAL), name="counts"
)


def test_a_batch_that_has_begun_by_another_plan_has_lost_its_own() -> None:
    for plan in None, "d2":
        with pytest.raises(LostPlanError, match=r"batch 6.*accept_loss=\{'counts': 6\}"):
            transactional(PLANNED, replace(OWN, plan=plan))


def test_the_same_plan_and_none_as_in_older_records_are_gone_on_with() -> None:
    for stored in PLANNED, PLANNED.confirmed(), found(6, 0, 5, _5=1):
        transactional(stored, replace(OWN, plan="d1"))


def test_an_opaque_state_needs_no_plan() -> None:
    judged(PLANNED)


def test_the_plan_is_in_the_record_until_the_commit() -> None:
    for record in PLANNED, PLANNED.confirmed(), pickle.loads(pickle.dumps(PLANNED)):
        assert record.plan == "d1"
        assert ControlRecord.decode(record.encode()) == record
    assert PLANNED.confirmed().announced().plan is None


def test_an_absent_record_of_a_listed_state_is_lost() -> None:
    with pytest.raises(LostStateError, match=r"batch 5.*accept_loss=\{'counts': 5\}"):
        judged(None)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(found(5, 2), id="an attempt after the committed one"),
        pytest.param(found(5, 2).announced(), id="another attempt committed"),
        pytest.param(found(6, 0, 5), id="another attempt of an earlier batch committed"),
        pytest.param(found(6, 0, 6, _5=1), id="a batch committed that is not yet"),
    ],
)
def test_a_record_that_the_log_cannot_have_written_is_of_another_copy(
    record: ControlRecord,
) -> None:
    with pytest.raises(CopiedLogError, match="counts was changed by another copy of this checkp"):
        judged(record)


def test_a_state_is_listed_with_the_attempts_that_had_begun_it() -> None:
    """An attempt that was committed without tuples has begun none."""
    with pytest.raises(CopiedLogError):
        judged(found(5, 1).confirmed(), claim=Claim(Token(3, 0)))
    judged(found(5, 1).confirmed().announced(), claim=Claim(base=5))  # an adopted log's
    with pytest.raises(CopiedLogError):
        judged(found(5, 2).confirmed(), claim=Claim(base=5))


def test_a_renamed_state_is_known_by_what_it_was_listed_with() -> None:
    older = Claim(begun=frozenset({LISTED}))
    judged(found(5, 1, _2=1).confirmed(), claim=older)  # the log has forgotten batch 2 with a sweep
    with pytest.raises(LostWritesError):
        judged(found(5, 1), claim=older)
    with pytest.raises(RewoundStateError):
        judged(found(5, 0), claim=Claim(LISTED, begun=frozenset({LISTED, Token(5, 0)})))


def test_what_a_state_holds_of_a_burnt_batch_is_undone_unless_it_counts_there() -> None:
    own = replace(OWN, retried={5: BURNT})
    opaque = Claim(kind=StateType.OPAQUE, base=5)
    check_record(found(5, 2), own, opaque, "counts")
    check_record(replace(own, token=Token(5, 2)), own, opaque, "counts")  # which has been told
    for record, claim in (
        (found(5, 2).confirmed().announced(), opaque),
        (found(5, 2), replace(opaque, kind=StateType.TRANSACTIONAL)),
    ):
        with pytest.raises(CopiedLogError):
            check_record(record, own, claim, "counts")


def test_a_state_is_refused_where_nobody_knows_whether_its_last_attempt_counts() -> None:
    own, claim = replace(OWN, retried={}), Claim(swept=5, base=5)
    with pytest.raises(CopiedLogError):
        check_record(found(5, 0), own, claim, "counts")
    check_record(found(5, 0).confirmed().announced(), own, claim, "counts")


@pytest.mark.parametrize(
    "error",
    [
        LostWritesError("counts", Token(3, 1), "redis"),
        LostStateError("counts", Token(3, 1)),
        RewoundStateError("counts", Token(2, 0), Token(3, 1)),
        CopiedLogError("counts", Token(3, 1), 2),
        LostPlanError("counts", Token(3, 1), "redis"),
    ],
)
def test_errors_about_lost_writes_pickle(error: StateError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
