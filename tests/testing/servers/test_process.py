"""What holds for every server that tests start."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trident.testing.servers.process import MissingServer, accepts, refuse_where_quick, wait_until
from trident.testing.servers.redis import RedisServer

ROOT = Path(__file__).parents[3]
STARTED_AND_LEFT = """
import pathlib, sys
from trident.testing.servers.redis import RedisServer

server = RedisServer(pathlib.Path(sys.argv[1]))
server.start()
server.pause()
print(server.port, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    with RedisServer(tmp_path / "redis", *durable) as started:
        yield started


def test_a_killed_server_comes_back_where_it_was(server: RedisServer) -> None:
    server.cli("set", "dogs", "3")
    port = server.port
    server.kill()
    assert not accepts(server.host, port)
    server.restart()
    assert (server.port, server.cli("get", "dogs")) == (port, "3")


def test_a_paused_server_takes_connections_and_answers_later(server: RedisServer) -> None:
    server.pause()
    assert accepts(server.host, server.port)
    asked = subprocess.Popen(
        ["redis-cli", "-p", str(server.port), "ping"], stdout=subprocess.PIPE, text=True
    )
    assert asked.poll() is None
    server.resume()
    assert asked.communicate(timeout=30)[0] == "PONG\n"


def test_a_server_that_does_not_start_shows_its_log(server: RedisServer, tmp_path: Path) -> None:
    wrong = RedisServer(tmp_path / "wrong", "--nonsense", "1")
    with pytest.raises(RuntimeError, match="(?s)redis-server did not start.*nonsense"):
        wrong.start()
    assert not wrong.running


def test_a_server_that_cannot_be_asked_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here for want of redis-cli."""
    refuse_where_quick()
    for name in ("redis-server", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(tmp_path))
    alone = RedisServer(tmp_path / "alone")
    with pytest.raises(MissingServer, match="redis-cli is not installed"):
        alone.start()
    assert not alone.running


def test_nothing_outlives_tests_that_are_killed(server: RedisServer, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTED_AND_LEFT, str(tmp_path / "left")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        port = int(tests.stdout.readline())
        assert accepts("127.0.0.1", port)
        tests.send_signal(signal.SIGKILL)
    wait_until(lambda: not accepts("127.0.0.1", port))
