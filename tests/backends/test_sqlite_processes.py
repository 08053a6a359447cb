"""Several processes and one SQLite file: readers beside a writer, and a writer that is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.backends.held_writer import KEYS, VALUES
from trident.backends.sqlite import SQLiteStore, opaque
from trident.backends.sqlite.backing_map import SQLiteMap
from trident.states import OpaqueValue, Token
from trident.states.control import Control, ControlRecord
from trident.states.errors import StateUnavailableError
from trident.states.testing.checks import following

ROOT = Path(__file__).parents[2]
FIRST = ControlRecord("a1", Token(1, 0), 0, {})
SECOND = ControlRecord("a1", Token(2, 0), 1, {})


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, "the process ended early"
        assert time.monotonic() < deadline, "the process did not get there"
        time.sleep(0.005)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteMap]:
    """A state whose first batch has stored a value for every key, and is announced."""
    opened = SQLiteStore(str(tmp_path / "counts.db"), "words").open()
    control = Control(opened)
    control.begin(FIRST)
    opened.multiAddFenced(KEYS, VALUES, FIRST.token, FIRST.retried, FIRST.encode())
    control.announce(FIRST)
    yield opened
    opened.close()


@contextmanager
def held_in_the_middle(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process has begun batch 2 and written half of its keys."""
    marker = folder / "half"
    command = [sys.executable, "-m", "tests.backends.held_writer", str(folder / "counts.db")]
    with subprocess.Popen([*command, str(marker)], cwd=ROOT) as process:
        try:
            wait_until(marker.exists, process)
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_reader_sees_none_of_a_write_under_way(store: SQLiteMap, tmp_path: Path) -> None:
    with held_in_the_middle(tmp_path):
        with store.snapshot():
            assert store.getControl() == SECOND.encode()
            assert store.multiGet(KEYS) == [OpaqueValue(1, 0, value, None) for value in VALUES]
        reader = opaque(tmp_path / "counts.db", "words").makeState()
        assert reader.multiGet([("word0",), ("word99999",), ("none",)]) == [10, 10, None]
        reader.close()


def test_a_second_writer_gives_up_with_an_error(store: SQLiteMap, tmp_path: Path) -> None:
    impatient = SQLiteStore(str(tmp_path / "counts.db"), "words", patience=0.05).open()
    with (
        held_in_the_middle(tmp_path),
        pytest.raises(StateUnavailableError, match="Another process is writing"),
    ):
        impatient.putControl(FIRST.encode(), SECOND.encode())
    impatient.close()


@pytest.mark.slow
def test_a_writer_killed_in_the_middle_of_a_write_leaves_nothing_of_it(
    store: SQLiteMap, tmp_path: Path
) -> None:
    store.close()
    with held_in_the_middle(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    assert store.getControl() == SECOND.encode()
    assert store.multiGet(KEYS) == [OpaqueValue(1, 0, value, None) for value in VALUES]

    again = ControlRecord("a1", Token(2, 1), 1, {})
    control = Control(store)
    control.begin(again, following(control, again, FIRST.token))
    fives = [5] * len(KEYS)
    assert not store.multiAddFenced(KEYS, fives, SECOND.token, SECOND.retried, SECOND.encode())
    assert store.multiAddFenced(KEYS, fives, again.token, again.retried, again.encode())
    assert store.multiGet(KEYS) == [OpaqueValue(2, 1, value + 5, value) for value in VALUES]


def test_what_a_killed_writer_acknowledged_stays(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "from trident.backends.sqlite import SQLiteStore\n"
        "from trident.states import OpaqueValue\n"
        f"store = SQLiteStore({str(tmp_path / 'counts.db')!r}, 'words').open()\n"
        "store.multiPut([b'k'], [OpaqueValue(1, 0, 5, None)])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    store = SQLiteStore(str(tmp_path / "counts.db"), "words").open()
    assert store.multiGet([b"k"]) == [OpaqueValue(1, 0, 5, None)]
    store.close()


def use_in_child(store: SQLiteMap, answer: Connection) -> None:
    found = store.multiGet([b"k"])
    begun = store.putControl(b"of the child", None)
    store.close()
    answer.send((found, begun))


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_connections_of_its_own(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "counts.db"), "words").open()
    store.multiPut([b"k"], [OpaqueValue(1, 0, 5, None)])
    assert store.multiGet([b"k"])
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe()
    child = forking.Process(target=use_in_child, args=(store, theirs))
    child.start()
    assert ours.poll(30)
    assert ours.recv() == ([OpaqueValue(1, 0, 5, None)], True)
    child.join(30)
    assert child.exitcode == 0
    assert store.getControl() == b"of the child"
    assert store.putControl(b"of the parent", b"of the child")
    store.close()
    assert os.listdir(tmp_path) == ["counts.db"]
    ours.close()
    theirs.close()
