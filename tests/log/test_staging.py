"""Staged batches on files: whole or not there, found out where damaged, each one's first."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trident.log import folders, staging
from trident.log.errors import LogUnavailableError, StagingError
from trident.log.folders import Folder
from trident.log.staging import StagedFile, StagingArea

PARTS = {"count": b"one\ntwo\0", "nothing": b"", "total": bytes(range(256)) * 300}
STAGED = StagedFile("a1", 3, "q1", 7, "5f3a" * 16, "91c0" * 16, PARTS, {"\0tried": 2})


@pytest.fixture
def area(tmp_path: Path) -> StagingArea:
    return StagingArea(Folder(tmp_path / "group" / "staged"))


def path_of(area: StagingArea) -> Path:
    [path] = area.folder.path.iterdir()
    return path


def test_what_was_staged_comes_back_in_the_order_of_the_batches(area: StagingArea) -> None:
    for txid in (9, 100, 8):
        area.stage(replace(STAGED, txid=txid))
    assert area.staged() == [replace(STAGED, txid=txid) for txid in (8, 9, 100)]


def test_nothing_is_staged_where_no_folder_is(area: StagingArea) -> None:
    assert area.staged() == []
    assert not area.folder.path.exists()


def test_a_file_is_named_by_batch_and_claim(area: StagingArea) -> None:
    area.stage(STAGED)
    assert path_of(area).name == f"{7:020d}-{3:020d}.staged"


def test_what_is_removed_is_gone_and_may_be_removed_again(area: StagingArea) -> None:
    area.stage(STAGED)
    area.remove(STAGED)
    area.remove(STAGED)
    assert area.staged() == []


def test_the_same_batch_may_be_staged_again(area: StagingArea) -> None:
    area.stage(STAGED)
    area.stage(STAGED)
    assert area.staged() == [STAGED]


@pytest.mark.parametrize("claims", [(3, 12), (12, 3)])
def test_what_the_later_run_has_staged_counts_whichever_comes_first(
    area: StagingArea, claims: tuple[int, int]
) -> None:
    for claim in claims:
        area.stage(replace(STAGED, claim=claim, digest=f"{claim}", parts={"count": b"%d" % claim}))
    assert [(each.claim, each.digest) for each in area.staged()] == [(12, "12")]


def test_of_a_batch_all_files_stay_until_it_is_removed(area: StagingArea) -> None:
    other = replace(STAGED, txid=8)
    for staged in (STAGED, replace(STAGED, claim=12), other):
        area.stage(staged)
    [last, _] = area.staged()
    assert len(area.folder.names()) == 3
    area.remove(replace(last, claim=15))
    assert area.folder.names() == [other.name]


def test_every_damaged_byte_is_found_out(area: StagingArea) -> None:
    area.stage(replace(STAGED, parts={"count": b"ab"}))
    path = path_of(area)
    data = path.read_bytes()
    for index in range(len(data)):
        path.write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
        with pytest.raises(StagingError, match="truncated or damaged"):
            area.staged()


def test_every_torn_end_is_found_out(area: StagingArea) -> None:
    area.stage(replace(STAGED, parts={"count": b"ab"}))
    path = path_of(area)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(StagingError, match=f"truncated or damaged, {length} bytes"):
            area.staged()


def test_a_format_of_another_version_is_refused(
    area: StagingArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "FORMAT", 5)
    area.stage(STAGED)
    monkeypatch.undo()
    with pytest.raises(StagingError, match="format 5, this version reads 4.*version that staged"):
        area.staged()


def test_what_a_killed_driver_has_not_finished_is_removed(area: StagingArea) -> None:
    area.stage(STAGED)
    (area.folder.path / "0123456789abcdef.tmp").write_bytes(b"half")
    assert area.staged() == [STAGED]
    assert path_of(area).name == STAGED.name


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_where_the_disk_fails_the_same_batch_can_be_staged_again(
    area: StagingArea, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    calls = 0
    works: Any = getattr(os, step)

    def fail_once(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return works(*args)

    area.folder.make()
    monkeypatch.setattr(os, step, fail_once)
    with pytest.raises(LogUnavailableError, match="No space left"):
        area.stage(STAGED)
    assert list(area.folder.path.iterdir()) == []
    area.stage(STAGED)
    assert area.staged() == [STAGED]


def test_a_batch_whose_name_could_not_be_synced_can_be_staged_again(
    area: StagingArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    area.folder.make()
    monkeypatch.setattr(folders, "sync_folder", fail)
    with pytest.raises(LogUnavailableError, match="Input/output error"):
        area.stage(STAGED)
    monkeypatch.undo()
    area.stage(STAGED)
    assert area.staged() == [STAGED]


def test_a_batch_is_on_disk_before_it_has_its_name(
    area: StagingArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noted(name: str, works: Any) -> Any:
        def call(*args: Any) -> Any:
            calls.append(name)
            return works(*args)

        return call

    area.folder.make()
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    area.stage(STAGED)
    assert calls == ["fsync", "replace", "fsync"]
