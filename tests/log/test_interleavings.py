"""Two drivers on one log, in every order of their steps: at most one goes on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError, LogUnavailableError, TakenOverError
from trident.log.log import LogWriter, MemoryLog
from trident.states.values import Token


def driver(log: MemoryLog, commits: list[tuple[int, str]]) -> Iterator[None]:
    """Read, begin, commit three batches; a step each."""
    writer = LogWriter(log)
    newest = log.newest()
    yield
    if newest is None:
        first = LogEntry(1, "", "a1", begun=Token(1, 0), committed=0)
    else:
        begun = Token(newest.committed + 1, newest.begun.attempt + 1)
        first = replace(newest, number=newest.number + 1, begun=begun)
    writer.begin(first)
    yield
    for _ in range(3):
        txid, attempt = writer.entry.begun
        retried = {**writer.entry.retried, **({txid: attempt} if attempt else {})}
        writer.append(committed=txid, begun=Token(txid + 1, 0), retried=retried)
        commits.append((txid, writer.id))
        yield


ORDERS = sorted(set(itertools.permutations("AAAAABBBBB")))


def test_every_txid_is_committed_once_in_every_order() -> None:
    for order in ORDERS:
        log, commits = MemoryLog("log"), list[tuple[int, str]]()
        drivers = {name: driver(log, commits) for name in "AB"}
        stopped = set()
        for name in order:
            if name not in stopped:
                try:
                    next(drivers[name])
                except LogConflictError:
                    stopped.add(name)
        assert [txid for txid, _ in commits] == list(range(1, len(commits) + 1)), order
        newest = log.newest()
        assert newest is not None
        assert newest.committed == len(commits), order
        # Who takes over ends the other: its commits come after all of the other's.
        assert len(list(itertools.groupby(commits, key=lambda commit: commit[1]))) <= 2, order


def test_a_writer_finds_out_who_has_taken_over() -> None:
    log = MemoryLog("log")
    old, new = LogWriter(log), LogWriter(log)
    old.begin(LogEntry(1, "", "a1", begun=Token(1, 0), committed=0))
    old.check_held()
    new.begin(replace(old.entry, number=2, begun=Token(1, 1)))
    with pytest.raises(TakenOverError, match=f"{new.id}.*{old.id}"):
        old.check_held()
    with pytest.raises(TakenOverError):
        old.next_attempt()


class Uncertain(MemoryLog):
    """Appends, or doesn't, and may fail either way."""

    adds = True
    fails = False

    def append(self, entry: LogEntry) -> None:
        if self.adds:
            super().append(entry)
        if self.fails:
            raise LogUnavailableError("log", "the answer was lost")


@pytest.mark.parametrize("adds", [True, False])
def test_an_append_whose_answer_is_lost_is_repeated_whether_it_is_there_or_not(adds: bool) -> None:
    log = Uncertain("log")
    writer = LogWriter(log)
    writer.begin(LogEntry(1, "", "a1", begun=Token(1, 0), committed=0))
    log.adds, log.fails = adds, True
    for _ in range(2):
        with pytest.raises(LogUnavailableError, match="the answer was lost"):
            writer.append(committed=1, begun=Token(2, 0))
        assert writer.entry.committed == 0
    log.adds, log.fails = True, False
    writer.append(committed=1, begun=Token(2, 0))
    assert writer.entry == log.newest()
    assert (writer.entry.number, writer.entry.committed) == (2, 1)


def test_an_append_whose_answer_is_lost_is_not_repeated_over_that_of_another_run() -> None:
    log = Uncertain("log")
    writer = LogWriter(log)
    writer.begin(LogEntry(1, "", "a1", begun=Token(1, 0), committed=0))
    log.adds, log.fails = False, True
    with pytest.raises(LogUnavailableError):
        writer.append(committed=1, begun=Token(2, 0))
    log.adds, log.fails = True, False
    LogWriter(log).begin(replace(writer.entry, number=2, begun=Token(1, 1)))
    with pytest.raises(LogConflictError):
        writer.append(committed=1, begun=Token(2, 0))
