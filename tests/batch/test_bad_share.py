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
    for txid in range(1, 101):
        share.check(txid, counted(0, 1_000))
    with pytest.raises(TooManyBadTuplesError) as raised:
        share.check(101, counted(21, 1_000))
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.txid, again.bad, again.tried) == (101, 21, 2_000)
    share.check(101, counted(20, 1_000))


def test_of_a_batch_the_last_attempt_is_in_the_share() -> None:
    share = BadShare("words", 0.01)
    for _ in range(3):
        share.check(1, counted(10, 10))
    with pytest.raises(TooManyBadTuplesError):
        share.check(2, counted(1, 10))
    share.check(2, counted(0, 10))


def test_staged_batches_are_in_the_share_before_they_commit() -> None:
    share = BadShare("words", 0.01)
    share.check(1, counted(6, 10))
    share.keep(1, counted(6, 10))
    share.keep(2, counted(4, 10))
    share.check(1, counted(6, 10))  # commits, and is in it already
    with pytest.raises(TooManyBadTuplesError, match="11 of the last 30"):
        share.check(3, counted(1, 10))


def test_a_staged_batch_commits_though_a_new_run_allows_less() -> None:
    share = BadShare("words", 0.0)
    share.keep(1, counted(6, 10))
    share.check(1, counted(6, 10))
    with pytest.raises(TooManyBadTuplesError, match="7 of the last 20"):
        share.check(2, counted(1, 10))


def test_what_is_counted_while_a_book_is_taken_is_not_lost() -> None:
    book = CounterBook()
    counter = book.counter("odd")
    counter.inc()
    taken = book.take()
    counter.inc(2)
    assert (taken, book.take(), book.take()) == ({"odd": 1}, {"odd": 2}, {})


def test_no_bad_tuple_at_all_is_allowed_by_0_and_any_number_without_a_share() -> None:
    BadShare("words", None).check(1, counted(9, 9))
    BadShare("words", 0).check(1, counted(0, 9))
    with pytest.raises(TooManyBadTuplesError):
        BadShare("words", 0).check(1, counted(1, 9))
