"""The log on files: exclusive, durable, flat."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trident.log import file_log
from trident.log.entry import LogEntry
from trident.log.errors import CorruptLogError, LogConflictError, LogUnavailableError
from trident.log.file_log import FileLog
from trident.log.folders import sync_folder
from trident.log.log import Log, MemoryLog
from trident.log.writer import LogWriter
from trident.states.values import Token

FIRST = LogEntry(1, "w", "a1", begun=Token(1, 0), committed=0)


def entry(number: int, writer: str = "w") -> LogEntry:
    return replace(FIRST, number=number, writer=writer)


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(params=["file", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    return FileLog(tmp_path / "log") if request.param == "file" else MemoryLog("log")


def test_an_empty_log_has_no_newest(log: Log) -> None:
    assert log.newest() is None


def test_the_newest_is_what_was_appended_last(log: Log) -> None:
    log.append(entry(1))
    log.append(entry(2))
    assert log.newest() == entry(2)


@pytest.mark.parametrize("taken", [1, 2])
def test_a_number_that_is_taken_or_passed_is_a_conflict(log: Log, taken: int) -> None:
    for number in (1, 2):
        log.append(entry(number))
    with pytest.raises(LogConflictError):
        log.append(entry(taken, "other"))
    assert log.newest() == entry(2)


def test_a_purged_number_is_a_conflict_and_leaves_nothing(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    for number in range(1, 21):
        log.append(entry(number))
    before = files(tmp_path)
    assert "00000000000000000001.json" not in before
    with pytest.raises(LogConflictError):
        FileLog(tmp_path).append(entry(1, "late"))
    assert files(tmp_path) == before


def test_many_entries_leave_a_handful_and_the_newest(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    for number in range(1, 101):
        log.append(entry(number))
    assert len(files(tmp_path)) <= 10
    assert log.newest() == entry(100)


def test_what_a_killed_writer_left_aside_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".dead.tmp").write_bytes(b"half an ent")
    FileLog(tmp_path).append(FIRST)
    assert files(tmp_path) == ["00000000000000000001.json"]


def test_a_writer_whose_file_was_swept_has_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, link = FileLog(tmp_path), os.link

    def overtaken(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        FileLog(tmp_path).append(entry(1, "faster"))
        link(source, target)

    monkeypatch.setattr(os, "link", overtaken)
    with pytest.raises(LogConflictError):
        late.append(entry(1, "late"))
    assert late.newest() == entry(1, "faster")


def test_the_file_is_synced_before_the_link_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        calls.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def linked(source: Path, target: Path) -> None:
        calls.append("link")
        link(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    FileLog(tmp_path).append(FIRST)
    assert [Path(call).suffix or call for call in calls] == [".tmp", "link", str(tmp_path)]


@pytest.mark.parametrize("content", [b"", b"{", FIRST.encode()[:-3], b"null\n92ee8ecb\n"])
def test_a_damaged_newest_entry_is_an_error_that_names_its_file(
    tmp_path: Path, content: bytes
) -> None:
    FileLog(tmp_path).append(FIRST)
    path = tmp_path / "00000000000000000002.json"
    path.write_bytes(content)
    with pytest.raises(CorruptLogError, match=str(path)):
        FileLog(tmp_path).newest()


def test_an_entry_under_another_number_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000002.json").write_bytes(FIRST.encode())
    with pytest.raises(CorruptLogError, match="it says that it is entry 1"):
        FileLog(tmp_path).newest()


def test_an_entry_purged_between_listing_and_reading_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer, read = FileLog(tmp_path), FileLog(tmp_path), Path.read_bytes
    writer.append(entry(1))

    def purged_meanwhile(path: Path) -> bytes:
        monkeypatch.setattr(Path, "read_bytes", read)
        for number in range(2, 12):
            writer.append(entry(number))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", purged_meanwhile)
    assert reader.newest() == entry(11)


def run_all(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_many_writers_of_one_number_exactly_one_succeeds(log: Log) -> None:
    for number in range(1, 31):
        barrier = threading.Barrier(4)
        won: list[str] = []

        def write(
            writer: str,
            number: int = number,
            barrier: threading.Barrier = barrier,
            won: list[str] = won,
        ) -> None:
            mine = FileLog(log.folder) if isinstance(log, FileLog) else log
            barrier.wait()
            try:
                mine.append(entry(number, writer))
                won.append(writer)
            except LogConflictError:
                pass

        run_all(*(lambda writer=str(index): write(writer) for index in range(4)))
        newest = log.newest()
        assert newest is not None
        assert won == [newest.writer]


def test_a_full_disk_is_an_error_and_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path)
    log.append(entry(1))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LogUnavailableError, match=f"{tmp_path} .*No space left.*Make room"):
        log.append(entry(2))
    assert log.newest() == entry(1)


def test_an_entry_whose_folder_cannot_be_synced_is_not_built_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LogWriter(FileLog(tmp_path))
    writer.begin(FIRST)
    fsync = os.fsync

    def broken(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", broken)
        with pytest.raises(LogUnavailableError, match="Input/output error") as raised:
            writer.append(committed=1, begun=Token(2, 0))
    assert writer.entry.committed == 0
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    newest = FileLog(tmp_path).newest()
    assert newest is not None
    assert newest.committed == 1  # there to be found by the next start


def failing(call: Callable[..., None], *, before: bool) -> Callable[..., None]:
    """A system call that does nothing, or all, and fails either way."""

    def fails(*args: Any) -> None:
        if not before:
            call(*args)
        raise OSError(errno.EIO, "Input/output error")

    return fails


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", ["fsync", "link", "open", "listdir"])
def test_an_append_that_failed_anywhere_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, before: bool
) -> None:
    log = FileLog(tmp_path)
    log.append(entry(1))
    with monkeypatch.context() as disk:
        disk.setattr(os, call, failing(getattr(os, call), before=before))
        with pytest.raises(LogUnavailableError):
            log.append(entry(2))
    log.append(entry(2))
    assert files(tmp_path) == ["00000000000000000001.json", "00000000000000000002.json"]
    assert FileLog(tmp_path).newest() == log.newest() == entry(2)


def test_a_repeated_append_changes_the_folder_anew_before_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, path = FileLog(tmp_path), tmp_path / "00000000000000000001.json"
    with monkeypatch.context() as disk:
        disk.setattr(file_log, "sync_folder", failing(sync_folder, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(FIRST)
    first = path.stat().st_ino
    log.append(FIRST)
    assert path.stat().st_ino != first


def test_what_a_failed_append_left_never_changes_under_who_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(file_log, "sync_folder", failing(sync_folder, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(FIRST)
        disk.setattr(os, "fsync", failing(os.fsync, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(FIRST)
        assert FileLog(tmp_path).newest() == FIRST


def test_a_repeated_append_that_a_later_writer_has_passed_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(file_log, "sync_folder", failing(sync_folder, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(FIRST)
    FileLog(tmp_path).append(entry(2, "later"))
    with pytest.raises(LogConflictError):
        log.append(FIRST)
    assert log.newest() == entry(2, "later")


def test_useless_files_that_cannot_be_removed_fail_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        os.stat(path)  # what isn't there is told first
        raise OSError(errno.EIO, "Input/output error")

    log = FileLog(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(os, "unlink", refused)
        log.append(FIRST)
    log.append(entry(2))
    assert files(tmp_path) == ["00000000000000000001.json", "00000000000000000002.json"]


def test_an_entry_that_a_later_writer_has_purged_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, listdir = FileLog(tmp_path), os.listdir

    def overtaken(folder: Path) -> list[str]:
        monkeypatch.setattr(os, "listdir", listdir)
        for number in range(2, 12):
            FileLog(tmp_path).append(entry(number, "later"))
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", overtaken)
    with pytest.raises(LogConflictError):
        log.append(FIRST)
