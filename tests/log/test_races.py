"""Many drivers that take over from each other, in real threads on real files."""

from __future__ import annotations

import random
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError
from trident.log.file_log import FileLog
from trident.log.writer import LogWriter
from trident.states.values import Token

ENOUGH = 60


def drive(folder: Path, commits: list[int], seed: int) -> None:
    """Take over again and again, each time for a few commits."""
    chance = random.Random(seed)
    log = FileLog(folder)
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


@pytest.mark.parametrize("seed", range(3))
def test_no_batch_is_committed_twice_and_none_is_left_out(tmp_path: Path, seed: int) -> None:
    FileLog(tmp_path).append(LogEntry(1, "", "a1", begun=Token(1, 0), committed=0))
    commits: list[int] = []
    threads = [
        threading.Thread(target=drive, args=[tmp_path, commits, 10 * seed + index])
        for index in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    newest = FileLog(tmp_path).newest()
    assert newest is not None
    assert max(Counter(commits).values()) == 1
    # A commit that was passed at once counts, but its writer could not know it.
    assert set(commits) <= set(range(1, newest.committed + 1))
    assert len(list(tmp_path.iterdir())) <= 12
