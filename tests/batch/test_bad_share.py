"""Which share of bad tuples stops a run."""

from __future__ import annotations

import pickle

import pytest

from trident.batch.bad_share import BadShare
from trident.batch.errors import TooManyBadTuplesError
from trident.operations.counters import CounterBook, count_bad


def counted(bad: int, tried: int) -> dict[str, int]:
    book = CounterBook()
    count_bad(book, "parse", bad, tried)
    return book.take()


def test_the_share_is_of_the_last_tuples_and_not_of_all() -> None:
    share = BadShare("words", 0.01)
    for _ in range(100):
        share.check(1, counted(0, 1_000))
        share.committed(counted(0, 1_000))
    with pytest.raises(TooManyBadTuplesError) as raised:
        share.check(101, counted(21, 1_000))
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.txid, again.bad, again.tried) == (101, 21, 2_000)
    share.check(101, counted(20, 1_000))


def test_a_batch_that_did_not_commit_is_not_in_the_share() -> None:
    share = BadShare("words", 0.01)
    for _ in range(3):
        share.check(1, counted(10, 10))
    share.committed(counted(10, 10))
    with pytest.raises(TooManyBadTuplesError):
        share.check(2, counted(1, 10))


def test_no_bad_tuple_at_all_is_allowed_by_0_and_any_number_without_a_share() -> None:
    BadShare("words", None).check(1, counted(9, 9))
    BadShare("words", 0).check(1, counted(0, 9))
    with pytest.raises(TooManyBadTuplesError):
        BadShare("words", 0).check(1, counted(1, 9))
