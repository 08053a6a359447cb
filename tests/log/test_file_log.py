"""The log on files: exclusive, durable, flat."""

from __future__ import annotations

import errno
import os
import pickle
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trident.log import file_log, folders
from trident.log.entry import LogEntry
from trident.log.errors import CorruptLogError, LogConflictError, LogUnavailableError
from trident.log.file_log import FileLog
from trident.log.folders import sync_folder
from trident.log.log import LogWriter
from trident.states.values import Token

FIRST = LogEntry(1, "w", "a1", begun=Token(1, 0), committed=0)


def entry(number: int, writer: str = "w") -> LogEntry:
    return replace(FIRST, number=number, writer=writer)


def files(folder: Path) -> list[int]:
    """The numbers of the files, which have to be all that is there."""
    return sorted(int(name.removesuffix(".json")) for name in os.listdir(folder))


def path_of(folder: Path, number: int) -> Path:
    return folder / f"{number:020d}.json"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large enough with one entry."""
    monkeypatch.setattr(file_log, "_LARGEST", 1)


@pytest.mark.usefixtures("small")
def test_a_number_whose_file_was_removed_is_a_conflict_and_leaves_nothing(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    for number in range(1, 21):
        log.append(entry(number))
    before = files(tmp_path)
    assert before == [20]
    with pytest.raises(LogConflictError):
        FileLog(tmp_path).append(entry(1, "late"))
    assert files(tmp_path) == before
    assert log.newest() == entry(20)


def test_entries_of_one_writer_share_a_file_until_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_log, "_LARGEST", 10 * len(FIRST.encode()))
    log, sizes = FileLog(tmp_path), set[int]()
    for number in range(1, 101):
        log.append(entry(number))
        [file] = files(tmp_path)
        sizes.add(path_of(tmp_path, file).stat().st_size)
        assert FileLog(tmp_path).newest() == entry(number)
    assert max(sizes) < 12 * len(FIRST.encode())
    assert file > 5


@pytest.mark.usefixtures("small")
def test_the_next_file_follows_whatever_became_of_the_metadata_that_was_appended(
    tmp_path: Path,
) -> None:
    """A spout may keep the object that it returned, and change it for its next batch."""
    kept = {"offset": 0}
    log = FileLog(tmp_path)
    for number in range(1, 4):
        kept["offset"] += 10
        log.append(replace(FIRST, number=number, metadata={"words": kept}))
    newest = FileLog(tmp_path).newest()
    assert newest is not None
    assert newest.metadata == {"words": {"offset": 30}}


def test_what_a_newcomer_appends_is_in_a_file_of_its_own(tmp_path: Path) -> None:
    FileLog(tmp_path).append(FIRST)
    theirs = path_of(tmp_path, 1).read_bytes()
    newcomer = FileLog(tmp_path)
    newcomer.newest()
    newcomer.append(entry(2, "newcomer"))
    assert files(tmp_path) == [2]
    assert path_of(tmp_path, 2).read_bytes() == entry(2, "newcomer").encode() != theirs


def test_a_log_with_a_file_for_each_entry_is_gone_on_from(tmp_path: Path) -> None:
    for number in (6, 7):
        path_of(tmp_path, number).write_bytes(entry(number).encode())
    log = FileLog(tmp_path)
    assert log.newest() == entry(7)
    log.append(entry(8, "newcomer"))
    assert files(tmp_path) == [8]


def test_the_file_is_synced_before_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def watch(name: str) -> None:
        call = getattr(os, name)

        def watched(descriptor: int, *args: Any) -> Any:
            calls.append(f"{name} {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
            return call(descriptor, *args)

        monkeypatch.setattr(os, name, watched)

    for name in ("write", "fsync", "fdatasync"):
        watch(name)
    log, file = FileLog(tmp_path), path_of(tmp_path, 1).name
    log.append(FIRST)
    assert calls == [f"write {file}", f"fsync {file}", f"fsync {tmp_path.name}"]
    calls.clear()
    log.append(entry(2))
    assert calls == [f"write {file}", f"fdatasync {file}"]


TORN = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"{", id="cut off"),
    pytest.param(entry(2).encode()[:-3], id="cut off in its checksum"),
    pytest.param(bytes(40), id="zeros"),
    pytest.param(bytes(40) + entry(2).encode()[40:], id="zeros at its beginning"),
]


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("alone", [True, False])
def test_a_torn_end_was_never_confirmed_and_does_not_count(
    tmp_path: Path, torn: bytes, alone: bool
) -> None:
    FileLog(tmp_path).append(FIRST)
    if alone:
        path_of(tmp_path, 2).write_bytes(torn)
    else:
        path_of(tmp_path, 1).write_bytes(FIRST.encode() + torn)
    log = FileLog(tmp_path)
    assert log.newest() == FIRST
    log.append(entry(2, "newcomer"))
    assert FileLog(tmp_path).newest() == entry(2, "newcomer")


@pytest.mark.parametrize("last", [True, False])
def test_a_damaged_entry_is_an_error_that_names_its_file(tmp_path: Path, last: bool) -> None:
    damaged = FIRST.encode().replace(b"spout", b"spOut")
    path = path_of(tmp_path, 1)
    path.write_bytes(damaged if last else damaged + entry(2).encode())
    with pytest.raises(CorruptLogError, match=str(path)):
        FileLog(tmp_path).newest()


@pytest.mark.parametrize("left", [b"", bytes(100), FIRST.encode()[:-1]])
def test_a_log_whose_only_entry_is_gone_is_no_new_log(tmp_path: Path, left: bytes) -> None:
    """The files before it were removed, when an entry in this one was confirmed."""
    FileLog(tmp_path).append(FIRST)
    FileLog(tmp_path).append(entry(2, "newcomer"))
    assert files(tmp_path) == [2]
    path_of(tmp_path, 2).write_bytes(left)
    with pytest.raises(CorruptLogError, match=f"{path_of(tmp_path, 2)}.*no entry is left"):
        FileLog(tmp_path).newest()


def test_what_is_no_entry_is_an_error_that_names_its_file(tmp_path: Path) -> None:
    path = path_of(tmp_path, 1)
    path.write_bytes(b"null\n92ee8ecb\n")
    with pytest.raises(CorruptLogError, match=str(path)):
        FileLog(tmp_path).newest()


@pytest.mark.usefixtures("small")
def test_an_entry_removed_between_listing_and_reading_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer, read = FileLog(tmp_path), FileLog(tmp_path), Path.read_bytes
    writer.append(entry(1))

    def removed_meanwhile(path: Path) -> bytes:
        monkeypatch.setattr(Path, "read_bytes", read)
        for number in range(2, 12):
            writer.append(entry(number))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", removed_meanwhile)
    assert reader.newest() == entry(11)


def interrupted(
    monkeypatch: pytest.MonkeyPatch, call: str, *, after: bool, by: Callable[[], None]
) -> None:
    """Let `by` happen before or after the next `call`."""
    original = getattr(os, call)

    def interruption(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(os, call, original)
        if not after:
            by()
        done = original(*args, **kwargs)
        if after:
            by()
        return done

    monkeypatch.setattr(os, call, interruption)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("call", ["open", "write", "fdatasync", "listdir"])
def test_of_an_entry_that_is_appended_and_a_newcomer_at_most_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, after: bool
) -> None:
    """The newcomer comes at any moment of the append."""
    writer, newcomer = FileLog(tmp_path), FileLog(tmp_path)
    writer.append(FIRST)
    newcomer.newest()
    stopped = []

    def come() -> None:
        try:
            newcomer.append(entry(2, "newcomer"))
        except LogConflictError:
            stopped.append("newcomer")

    interrupted(monkeypatch, call, after=after, by=come)
    try:
        writer.append(entry(2))
    except LogConflictError:
        stopped.append("writer")
    assert stopped
    newest = FileLog(tmp_path).newest()
    assert newest == entry(2, "w" if stopped == ["newcomer"] else "newcomer") or len(stopped) == 2


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "listdir"])
def test_what_a_writer_has_confirmed_is_not_passed_over_by_a_newcomer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, after: bool
) -> None:
    """The writer goes on at any moment of a newcomer's append."""
    writer, newcomer = FileLog(tmp_path), FileLog(tmp_path)
    writer.append(FIRST)
    newcomer.newest()
    stopped = []

    def go_on() -> None:
        try:
            writer.append(entry(2))
        except LogConflictError:
            stopped.append("writer")

    interrupted(monkeypatch, call, after=after, by=go_on)
    try:
        newcomer.append(entry(2, "newcomer"))
    except LogConflictError:
        stopped.append("newcomer")
    assert stopped
    if "writer" not in stopped:
        assert FileLog(tmp_path).newest() == entry(2)


def test_another_entry_of_the_number_that_was_read_is_a_conflict(tmp_path: Path) -> None:
    """Of two entries of one number, only the one counts, and the newcomer had read the other."""
    FileLog(tmp_path).append(FIRST)
    newcomer = FileLog(tmp_path)
    newcomer.newest()
    path_of(tmp_path, 2).write_bytes(entry(1, "other").encode())
    with pytest.raises(LogConflictError):
        newcomer.append(entry(2, "newcomer"))
    assert FileLog(tmp_path).newest() == entry(1, "other")


def test_a_full_disk_is_an_error_and_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path)
    log.append(entry(1))
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LogUnavailableError, match=f"{tmp_path} .*No space left.*Make room"):
        log.append(entry(2))
    assert log.newest() == entry(1)


def test_a_write_that_the_disk_cuts_short_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, write = FileLog(tmp_path), os.write
    log.append(entry(1))
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:-1]))
        with pytest.raises(LogUnavailableError, match="bytes were written"):
            log.append(entry(2))
    assert log.newest() == entry(1)
    log.append(entry(2))
    assert FileLog(tmp_path).newest() == entry(2)


def test_tries_on_a_full_disk_keep_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = FileLog(tmp_path), os.write
    log.append(entry(1))
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:-1]))
        for _ in range(10):
            with pytest.raises(LogUnavailableError):
                log.append(entry(2))
    assert files(tmp_path) == [1]
    log.append(entry(2))
    assert FileLog(tmp_path).newest() == entry(2)


@pytest.mark.usefixtures("small")
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
@pytest.mark.parametrize(
    ("call", "size"),
    [(call, 60_000) for call in ("open", "write", "fdatasync", "close", "listdir")]
    + [(call, 1) for call in ("open", "write", "fsync", "close", "listdir")],
)
def test_an_append_that_failed_anywhere_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, size: int, before: bool
) -> None:
    monkeypatch.setattr(file_log, "_LARGEST", size)
    log = FileLog(tmp_path)
    log.append(entry(1))
    with monkeypatch.context() as disk:
        disk.setattr(os, call, failing(getattr(os, call), before=before))
        with pytest.raises(LogUnavailableError):
            log.append(entry(2))
    log.append(entry(2))
    [file] = files(tmp_path)
    assert path_of(tmp_path, file).read_bytes() == entry(2).encode()
    assert FileLog(tmp_path).newest() == log.newest() == entry(2)
    log.append(entry(3))
    assert FileLog(tmp_path).newest() == entry(3)


def test_an_append_that_failed_is_not_repeated_in_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To sync it again would prove nothing: the system may have forgotten what it did not write."""
    log = FileLog(tmp_path)
    log.append(FIRST)
    with monkeypatch.context() as disk:
        disk.setattr(os, "fdatasync", failing(os.fdatasync, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(entry(2))
    assert files(tmp_path) == [1]
    log.append(entry(2))
    assert files(tmp_path) == [2]


def test_a_log_whose_folders_cannot_be_synced_makes_them_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be there, and nothing would sync them when the append is repeated."""
    log, synced = FileLog(tmp_path / "checkpoint" / "group"), list[Path]()
    with monkeypatch.context() as disk:
        disk.setattr(folders, "sync_folder", failing(sync_folder, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(FIRST)
    assert not list(tmp_path.iterdir())

    def syncs(folder: Path) -> None:
        synced.append(folder)
        sync_folder(folder)

    monkeypatch.setattr(folders, "sync_folder", syncs)
    log.append(FIRST)
    assert synced == [tmp_path, tmp_path / "checkpoint"]


def test_a_repeated_append_changes_the_folder_anew_before_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FileLog(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(file_log, "sync_folder", failing(sync_folder, before=True))
        with pytest.raises(LogUnavailableError):
            log.append(FIRST)
    assert files(tmp_path) == [1]
    log.append(FIRST)
    assert files(tmp_path) == [2]


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


@pytest.mark.usefixtures("small")
def test_useless_files_that_cannot_be_removed_fail_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        os.stat(path)  # what isn't there is told first
        raise OSError(errno.EIO, "Input/output error")

    log = FileLog(tmp_path)
    log.append(FIRST)
    with monkeypatch.context() as disk:
        disk.setattr(os, "unlink", refused)
        log.append(entry(2))
        assert files(tmp_path) == [1, 2]
    log.append(entry(3))
    assert files(tmp_path) == [3]


def test_an_entry_whose_file_a_later_writer_has_removed_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, listdir = FileLog(tmp_path), os.listdir
    log.append(FIRST)

    def overtaken(folder: Path) -> list[str]:
        monkeypatch.setattr(os, "listdir", listdir)
        for number in range(2, 12):
            FileLog(tmp_path).append(entry(number, "later"))
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", overtaken)
    with pytest.raises(LogConflictError):
        log.append(entry(2))
