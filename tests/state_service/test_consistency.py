"""Readers elsewhere see whole committed batches only, whatever befalls the driver."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest

from tests.packaging.conftest import ROOT
from tests.state_service import killed_updates
from tests.state_service.read_states import latest_reader, readers, wrong
from trident import StateClient
from trident.testing.servers.promised import Served

PATIENCE = 60.0
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def started(log: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", killed_updates.__name__, *arguments]
    with log.open("w") as errors:  # a pipe would fill up
        return subprocess.Popen(
            command,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def unused_ports() -> list[int]:
    with ExitStack() as bound:
        found = []
        for _ in range(2):
            unused = bound.enter_context(closing(socket.socket()))
            unused.bind(("127.0.0.1", 0))
            found.append(unused.getsockname()[1])
        return found


def ended(process: subprocess.Popen[str], log: Path) -> str:
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, log.read_text()
    return out


def killed_while_read(url: str, folder: Path) -> None:
    """Have eight readers ask two servers, the driver's and another, and judge what they saw.

    A ninth asks for what was written last: it has to see what the others must not.
    """
    port, thrift_port = unused_ports()
    over = Event()
    its_log, drivers_log = folder / "elsewhere.log", folder / "driver.log"
    checkpoint = str(folder / "checkpoint")
    with (
        started(its_log, url, checkpoint) as elsewhere,
        started(drivers_log, url, checkpoint, str(port), str(thrift_port)) as driver,
    ):
        try:
            assert elsewhere.stdout is not None
            its_port, its_thrift_port = elsewhere.stdout.readline().split()
            its_url = f"http://127.0.0.1:{its_port}"
            asking = [
                *readers(
                    f"http://127.0.0.1:{port}", f"thrift://127.0.0.1:{thrift_port}", over, "driver"
                ),
                *readers(its_url, f"thrift://127.0.0.1:{its_thrift_port}", over, "elsewhere"),
            ]
            latest = latest_reader(its_url, over)
            for reader in (*asking, latest):
                reader.start()
            assert ended(driver, drivers_log) == "done\n"
            batches = killed_updates.LIVES * killed_updates.BATCHES
            with StateClient(its_url) as client:
                sizes, txid = client.multiGet("sizes", range(1, batches + 1))
                last = client.multiGet("one", ["a"]).values[0]
            over.set()
            for reader in (*asking, latest):
                reader.join(PATIENCE)
            ended(elsewhere, its_log)
        finally:
            over.set()
            driver.kill()
            elsewhere.kill()
    assert txid == batches
    sums = {0: 0}
    for number, size in enumerate(sizes, 1):
        sums[number] = sums[number - 1] + size // 2
    assert last == sums[batches]
    for reader in asking:
        assert reader.failure is None, reader.label
        assert wrong(reader.seen, sums) == [], reader.label
        assert len(reader.seen) > killed_updates.LIVES, reader.label
    assert wrong(latest.seen, sums), "the readers could not have seen a batch under way"


@pytest.mark.slow
def test_readers_see_committed_batches_only_while_drivers_of_sqlite_are_killed(
    tmp_path: Path,
) -> None:
    killed_while_read(f"sqlite:{tmp_path / 'counts.db'}?prefix=NAME", tmp_path)


@pytest.mark.slow
def test_readers_see_committed_batches_only_while_drivers_of_redis_are_killed(
    redis_server: Served, tmp_path: Path
) -> None:
    import redis

    ours = f"killed-{uuid4().hex}"
    killed_while_read(f"{redis_server.url}/0?prefix={ours}-NAME", tmp_path)
    with redis.Redis.from_url(redis_server.url) as client:
        client.delete(*client.scan_iter(match=f"{ours}*"))


def test_a_torn_answer_and_one_from_the_past_would_be_found() -> None:
    sums = {0: 0, 1: 5, 2: 7}
    assert wrong([(0, [0, 0]), (None, [5, 5]), (2, [7, 7])], sums) == []
    assert wrong([(1, [5, 7])], sums) == [(1, [5, 7])]
    assert wrong([(None, [6, 6])], sums) == [(None, [6, 6])]
    assert wrong([(1, [7, 7])], sums) == [(1, [7, 7])]
    assert wrong([(2, [7, 7]), (None, [5, 5])], sums) == [(None, [5, 5])]
