"""What every log promises, on files, in memory, and in each store that keeps checkpoints."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.log.conftest import Open
from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError, TakenOverError
from trident.log.file_log import FileLog
from trident.log.log import Log, LogWriter
from trident.states.values import Token

FIRST = LogEntry(1, "w", "a1", begun=Token(1, 0), committed=0)
ENOUGH = 60


def entry(number: int, writer: str = "w") -> LogEntry:
    return replace(FIRST, number=number, writer=writer)


def test_an_empty_log_has_no_newest(open_log: Open) -> None:
    assert open_log().newest() is None


def test_the_newest_is_what_was_appended_last(open_log: Open) -> None:
    log = open_log()
    log.append(entry(1))
    log.append(entry(2))
    assert log.newest() == entry(2)
    assert open_log().newest() == entry(2)


@pytest.mark.parametrize("taken", [1, 2])
def test_a_number_that_is_taken_or_passed_is_a_conflict(open_log: Open, taken: int) -> None:
    log = open_log()
    for number in (1, 2):
        log.append(entry(number))
    for late in (log, open_log()):
        with pytest.raises(LogConflictError):
            late.append(entry(taken, "other"))
    assert log.newest() == entry(2)


def test_an_entry_may_be_appended_again(open_log: Open) -> None:
    log = open_log()
    for number in (1, 2, 2):
        log.append(entry(number))
    log.append(entry(3))
    assert log.newest() == entry(3)


def test_an_entry_goes_on_from_what_was_appended_whatever_became_of_its_metadata(
    open_log: Open,
) -> None:
    """A spout may keep the object that it returned, and change it for its next batch."""
    kept, log = {"offset": 0}, open_log()
    for number in range(1, 4):
        kept["offset"] += 10
        log.append(replace(FIRST, number=number, metadata={"words": kept}))
    newest = open_log().newest()
    assert newest is not None
    assert newest.metadata == {"words": {"offset": 30}}


def test_a_writer_that_was_taken_over_appends_nothing_more(open_log: Open) -> None:
    zombie, log = LogWriter(open_log()), open_log()
    zombie.begin(FIRST)
    newest = log.newest()
    assert newest is not None
    newcomer = LogWriter(log)
    newcomer.begin(replace(newest, number=2, begun=Token(1, 1)))
    with pytest.raises(TakenOverError, match=newcomer.id):
        zombie.next_attempt()
    with pytest.raises(LogConflictError):
        zombie.append(committed=1)
    newcomer.append(committed=1)
    assert open_log().newest() == newcomer.entry


def test_of_many_writers_of_one_number_at_most_one_succeeds(open_log: Open) -> None:
    logs = [open_log() for _ in range(4)]
    # SeaweedFS takes a second for four at once.
    for number in range(1, 4 if "s3:" in logs[0].place else 21):
        barrier = threading.Barrier(4)
        won: list[str] = []

        def write(
            writer: int,
            number: int = number,
            barrier: threading.Barrier = barrier,
            won: list[str] = won,
        ) -> None:
            logs[writer].newest()
            barrier.wait()
            try:
                logs[writer].append(entry(number, str(writer)))
                won.append(str(writer))
            except LogConflictError:
                pass

        run_all([lambda writer=writer: write(writer) for writer in range(4)])
        newest = logs[0].newest()
        assert newest is not None
        assert newest.number == number
        assert won == [newest.writer] or (isinstance(logs[0], FileLog) and won == [])


def run_all(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def drive(log: Log, commits: list[int], seed: int) -> None:
    """Take over again and again, each time for a few commits."""
    chance = random.Random(seed)
    while True:
        newest = log.newest()
        assert newest is not None
        if newest.committed >= ENOUGH:
            return
        writer = LogWriter(log)
        begun = Token(newest.committed + 1, newest.begun.attempt + 1)
        try:
            writer.begin(replace(newest, number=newest.number + 1, begun=begun))
            for _ in range(chance.randrange(1, 12)):
                txid = writer.entry.begun.txid
                writer.append(committed=txid, begun=Token(txid + 1, 0))
                commits.append(txid)
        except LogConflictError:
            pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_of_drivers_that_take_over_from_each_other_no_batch_is_committed_twice_or_left_out(
    open_log: Open, seed: int
) -> None:
    open_log().append(LogEntry(1, "", "a1", begun=Token(1, 0), committed=0))
    commits: list[int] = []
    logs = [open_log() for _ in range(3)]
    run_all(
        [
            lambda log=log, index=index: drive(log, commits, 10 * seed + index)
            for index, log in enumerate(logs)
        ]
    )
    newest = open_log().newest()
    assert newest is not None
    assert max(Counter(commits).values()) == 1
    # A commit that was passed at once counts, but its writer could not know it.
    assert set(commits) <= set(range(1, newest.committed + 1))
    if isinstance(logs[0], FileLog):
        assert len(list(logs[0].folder.iterdir())) <= 12
