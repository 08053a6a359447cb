"""The last entry of the log is gone though it was confirmed: a disk that forgets what it synced.

It can't be told from one that was torn. The states can: whoever goes on is right, or stops.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.batch.counting import CountingEngine, Words, counts, open_runner
from tests.states.abilities import FencedMap, TroubledServer
from trident.batch.watchpoints import watching
from trident.log.errors import CorruptLogError
from trident.log.file_log import FileLog
from trident.states.errors import CopiedLogError, OtherLogError
from trident.states.maps.factory import OpaqueMap
from trident.states.values import Token
from trident.testing import fail_at

BATCHES = ("a b", "b", "a", "a b")
TRUTH = [3, 3]
DAMAGES = [
    pytest.param(lambda entry: b"", id="cut off"),
    pytest.param(lambda entry: entry[:-1], id="one byte cut off"),
    pytest.param(lambda entry: bytes(len(entry)), id="zeros"),
    pytest.param(lambda entry: bytes(20) + entry[20:], id="zeros at its beginning"),
]


def go_on(folder: Path, server: TroubledServer) -> list[int | None]:
    state = OpaqueMap(FencedMap(server))
    runner = open_runner(FileLog(folder), state)
    while runner.next_txid <= len(BATCHES):
        runner.run(Words(CountingEngine(state), BATCHES[runner.next_txid - 1]))
    return counts(state, "a b")


def damage(folder: Path, how: Callable[[bytes], bytes]) -> None:
    path = max(folder.iterdir())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + how(b"".join(lines[-2:])))


def moments(folder: Path) -> list[tuple[str, Path, TroubledServer]]:
    """Copies of log and store at every point of every batch, the third with two attempts."""
    server, found = TroubledServer(), list[tuple[str, Path, TroubledServer]]()

    def remember(point: str, token: Token) -> None:
        copied, store = folder / str(len(found)), TroubledServer()
        shutil.copytree(folder / "log", copied)
        store.entries.update(server.entries)
        found.append((f"{point} of {token}", copied, store))

    with fail_at("after write", txid=3), watching(remember):
        assert go_on(folder / "log", server) == TRUTH
    return found


@pytest.mark.parametrize("how", DAMAGES)
def test_no_commit_is_lost_silently_with_the_last_entry(
    tmp_path: Path, how: Callable[[bytes], bytes]
) -> None:
    stopped = set()
    for where, log, server in moments(tmp_path):
        damage(log, how)
        try:
            assert go_on(log, server) == TRUTH, where
        except (CopiedLogError, OtherLogError, CorruptLogError):
            stopped.add(where)
    announced = {f"after announce of {Token(txid, int(txid == 3))}" for txid in range(1, 5)}
    assert announced <= stopped


def test_an_end_that_can_not_be_read_is_told_beside_what_else_it_may_be(tmp_path: Path) -> None:
    server = TroubledServer()
    go_on(tmp_path / "log", server)
    damage(tmp_path / "log", lambda entry: entry[:-1])
    told = r"the checkpoint was copied .* lost the end of the log \(the last \d+ bytes of .*"
    with pytest.raises(CopiedLogError, match=told):
        go_on(tmp_path / "log", server)
