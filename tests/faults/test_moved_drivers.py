"""Drivers in folders of their own, which share a URL and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.faults import moving
from trident.drpc.service import LocalDRPC
from trident.testing.servers.process import stands_still, wait_until
from trident.testing.servers.promised import Served

ROOT = Path(__file__).parents[2]
POINTS = ["before begin", "after write", "before commit", "after commit", "before announce"]


class Drivers:
    """Runs the program on one machine after the other."""

    def __init__(self, checkpoint: str, state: str, machines: Path) -> None:
        self._urls = checkpoint, state
        self._machines = machines

    def start(self, how: str = "none", point: str = "nowhere") -> subprocess.Popen[str]:
        machine = self._machines / uuid4().hex
        machine.mkdir()
        command = [sys.executable, "-m", moving.__name__, *self._urls, how, point]
        away = {"HOME": str(machine), "TMPDIR": str(machine), "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            command, cwd=machine, env={**os.environ, **away}, stderr=subprocess.PIPE, text=True
        )

    def run(self, how: str = "none", point: str = "nowhere") -> int:
        driver = self.start(how, point)
        _, said = driver.communicate(timeout=60)
        assert "Traceback" not in said, said
        return driver.returncode

    def counted_once(self) -> bool:
        with LocalDRPC(moving.topology(self._urls[1]).plan()) as drpc:
            return dict(json.loads(drpc.execute("counts", ""))) == moving.COUNTS


@pytest.fixture(params=["redis", "zookeeper"])
def drivers(request: pytest.FixtureRequest, redis_server: Served, tmp_path: Path) -> Drivers:
    """Their log in a store of each kind, their state in Redis."""
    name = uuid4().hex
    checkpoint = f"{redis_server.url}?prefix={name}"
    if request.param == "zookeeper":
        server: Served = request.getfixturevalue("zookeeper_server")
        checkpoint = f"{server.url}/tests/{name}?session_timeout=0.4"
    return Drivers(checkpoint, f"{redis_server.url}?prefix={name}", tmp_path)


def test_a_driver_that_is_killed_goes_on_elsewhere(drivers: Drivers) -> None:
    for point in POINTS:
        assert drivers.run("SIGKILL", point) == -signal.SIGKILL
    assert drivers.run() == 0
    assert drivers.counted_once()


def test_a_driver_that_stood_still_while_another_took_over_changes_nothing(
    drivers: Drivers,
) -> None:
    zombie = drivers.start("SIGSTOP", "before commit")
    try:
        wait_until(lambda: stands_still(zombie.pid))
        assert drivers.run() == 0
        assert drivers.counted_once()
        zombie.send_signal(signal.SIGCONT)
        _, said = zombie.communicate(timeout=60)
        assert zombie.returncode == 1
        assert "another run has written entry" in said or "was taken over by the run" in said
    finally:
        zombie.kill()
        zombie.communicate()
    assert drivers.counted_once()
