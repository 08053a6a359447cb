"""Checkpoints: where they may be, and that only one run holds one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.log.conftest import open_checkpoint
from trident.log.checkpoint import (
    Checkpoint,
    TemporaryCheckpoint,
    hold_checkpoint,
    local_path,
)
from trident.log.entry import LogEntry
from trident.log.errors import CheckpointError, CheckpointInUseError
from trident.log.folders import folder_of
from trident.log.log import MemoryLog
from trident.states.values import Token


def test_a_second_run_of_this_process_is_told_that_it_runs_already(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path / "c")
    (tmp_path / "link").symlink_to("c")
    found = rf"run of this process, {os.getpid()}: the topology runs already. Call stop\(\)"
    with pytest.raises(CheckpointInUseError, match=found) as raised:
        Checkpoint(tmp_path / "link")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    first.release()
    first.release()
    Checkpoint(f"file://{tmp_path}/c").release()


@pytest.mark.parametrize(
    "url",
    [
        "file://nas/words",
        "file://me:s3cr3t@nas/words",
        "file:///words?prefix=a",
        "file:///words#a",
        "file:",
    ],
)
def test_what_a_file_url_says_beside_its_folder_is_not_ignored(url: str) -> None:
    with pytest.raises(CheckpointError, match="no host and no options.*file:///folder") as raised:
        local_path(url)
    assert "s3cr3t" not in str(raised.value)
    assert local_path("file://localhost/a%3Fb") == Path("/a?b")


def test_a_run_of_another_process_is_named_until_it_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from trident.log.checkpoint import Checkpoint; "
            "held = Checkpoint(sys.argv[1]); print('held', flush=True); sys.stdin.read()",
            str(tmp_path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(CheckpointInUseError, match=f"run in process {holder.pid}. Stop that"):
            Checkpoint(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    Checkpoint(tmp_path).release()


def test_a_forked_child_has_no_part_in_the_lock(tmp_path: Path) -> None:
    held = Checkpoint(tmp_path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        held.release()
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        with pytest.raises(CheckpointInUseError):
            Checkpoint(tmp_path)
        held.release()
        Checkpoint(tmp_path).release()
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_child_that_outlives_a_killed_run_does_not_hold_its_checkpoint(tmp_path: Path) -> None:
    program = """if True:
        import os, sys
        from trident.log.checkpoint import Checkpoint
        held = Checkpoint(sys.argv[1])
        if os.fork() == 0:
            print("child", flush=True)
        sys.stdin.read()
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"child\n"
        holder.kill()
        holder.wait()
        Checkpoint(tmp_path).release()
    finally:
        holder.kill()
        holder.communicate()


def test_every_new_folder_is_synced_into_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    checkpoint = Checkpoint(tmp_path / "a" / "b")
    checkpoint.log("words").append(LogEntry(1, "w", "a1", begun=Token(1, 0), committed=0))
    checkpoint.release()
    folders = ["", "a", "a/b", "a/b/words", "a/b/words/log"]
    assert {str(tmp_path / folder) for folder in folders} <= synced


@pytest.mark.parametrize("url", ["hdfs://nn:8020/c", "s3a://bucket/c", "dbfs:/c"])
def test_other_file_systems_are_named(url: str) -> None:
    with pytest.raises(CheckpointError, match="no scheme of a checkpoint's.*for spark_checkpoint="):
        open_checkpoint(url, {})


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="it can't be written") as raised:
        Checkpoint(tmp_path / "file" / "c")
    assert str(tmp_path) in str(raised.value)


def test_the_checkpoint_of_a_query_of_sparks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata").touch()
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    with pytest.raises(CheckpointError, match="a query of Spark's own.* Give a new folder"):
        open_checkpoint(tmp_path, {"words": ["words"]})


@pytest.mark.parametrize("group", ["words", "a/b", "..", ".", ".lock", "ü ß", "%2E"])
def test_each_group_has_a_folder_of_its_own_inside(tmp_path: Path, group: str) -> None:
    folder = tmp_path / folder_of(group)
    folder.mkdir()
    assert folder.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert folder != tmp_path / ".lock"


def test_groups_never_share_a_folder() -> None:
    groups = ["a", "a/b", "a%2Fb", ".", "%2E", "..", "%2E."]
    assert len({folder_of(group) for group in groups}) == len(groups)


def test_a_log_of_a_group_that_is_missing_is_an_error_not_left_behind(tmp_path: Path) -> None:
    first = LogEntry(1, "w", "a1", begun=Token(4, 0), committed=3, streams={"a/b": "c", "z": "d"})
    held = Checkpoint(tmp_path)
    held.log("a/b").append(first)
    held.folder("never begun").make()
    held.release()
    with pytest.raises(CheckpointError) as raised:
        open_checkpoint(tmp_path, {"b": ["b"], "c": ["c"]})
    found = "stream(s) a/b, z, up to batch 3, in a group 'a/b' that this topology does not have"
    assert found in str(raised.value)
    assert "its groups are: b, c " in str(raised.value)
    assert f"remove or rename {tmp_path / folder_of('a/b')}" in str(raised.value)
    open_checkpoint(tmp_path, {"a/b": ["a/b"], "new": ["new"]}).release()


def test_a_log_that_another_checkpoint_has_taken_over_may_be_left(tmp_path: Path) -> None:
    first = LogEntry(1, "w", "a1", begun=Token(1, 0), committed=0, successor=("b2", "/new"))
    held = Checkpoint(tmp_path)
    held.log("old").append(first)
    held.release()
    open_checkpoint(tmp_path, {"new": ["new"]}).release()


def test_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path("c:d/e") == tmp_path / "c:d/e"
    assert local_path(Path("c")) == tmp_path / "c"


def test_without_a_checkpoint_logs_are_in_memory_and_folders_go_with_the_run() -> None:
    checkpoint = hold_checkpoint(None)
    assert isinstance(checkpoint, TemporaryCheckpoint)
    assert isinstance(checkpoint.log("words"), MemoryLog)
    folder = checkpoint.folder("words")
    folder.make()
    checkpoint.release()
    checkpoint.release()
    assert not folder.path.parent.exists()
