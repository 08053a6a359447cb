"""What the control record's keeper notices between two batches."""

from __future__ import annotations

import pickle

import pytest

from trident.states import (
    Control,
    ControlRecord,
    LostStateError,
    LostWritesError,
    RewoundStateError,
    StateError,
    StateUnavailableError,
    Token,
)
from trident.states.testing.stores import FencedMap, Server


def record(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("log", Token(txid, attempt), txid - 1)


def confirmed(server: Server) -> Control:
    """A control whose batch 1 is begun and confirmed."""
    control = Control(FencedMap(server), "counts")
    control.begin(record(1))
    control.ready(record(1))
    return control


def test_a_fail_over_before_ready_fails_the_attempt() -> None:
    server = Server()
    control = Control(FencedMap(server), "counts")
    control.begin(record(1))
    server.fail_over()
    with pytest.raises(StateUnavailableError, match="counts: the store restarted"):
        control.ready(record(1))


def test_a_fail_over_between_ready_and_announcement_stops_the_run() -> None:
    server = Server()
    control = confirmed(server)
    server.fail_over()
    with pytest.raises(LostWritesError, match="had confirmed batch 1, which is committed"):
        control.announce(record(1))


def test_a_fail_over_that_kept_the_announcement_is_harmless() -> None:
    server = Server()
    control = confirmed(server)
    assert control.announce(record(1))
    server.fail_over()
    control.begin(record(2))
    control.ready(record(2))
    assert control.announce(record(2))


def test_a_forgotten_announcement_is_noticed_at_the_next_begin() -> None:
    server = Server()
    control = confirmed(server)
    assert control.announce(record(1))
    server.fail_over(lost=1)
    with pytest.raises(RewoundStateError, match=r"batch 1 \(attempt 0\) as under way, but batch 1"):
        control.begin(record(2), listed=Token(1, 0))


def test_a_control_record_that_vanished_is_noticed_at_the_next_begin() -> None:
    server = Server()
    control = confirmed(server)
    assert control.announce(record(1))
    server.entries.clear()
    with pytest.raises(LostStateError):
        control.begin(record(2))


def test_an_announcement_that_was_stored_without_an_answer_counts() -> None:
    server = Server()
    control = confirmed(server)
    server.lose_answer()
    with pytest.raises(StateUnavailableError):
        control.announce(record(1))
    assert control.announce(record(1))


def test_two_states_in_one_place_are_noticed_when_the_second_begins() -> None:
    server = Server()
    Control(FencedMap(server), "counts").begin(record(1))
    with pytest.raises(StateError, match="state sums: attempt 0 of batch 1 has begun there alrea"):
        Control(FencedMap(server), "sums").begin(record(1))


def test_lost_writes_pickle() -> None:
    error = LostWritesError("counts", Token(3, 1))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
