"""Dead letters in a folder: a file for each batch, which counts when its batch is committed."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from trident.backends.state_url import StateURL
from trident.operations import letter_folder
from trident.operations.letter_folder import LetterFolder, LetterFolderState, prefixes_in
from trident.states.control import ControlRecord
from trident.states.errors import (
    CorruptStateError,
    NoStateError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
    StateURLError,
    UnownedStateError,
)
from trident.states.values import Token

LETTER = b'{"batch_group": "s", "batch": %d, "step": "map(f)", "error": "E", "tuple": "{}"}'


def opened(folder: Path) -> LetterFolderState:
    return LetterFolder(folder).named("dead_letters.a/b").makeState()


def written(
    state: LetterFolderState, txid: int, attempt: int = 0, letters: int = 1
) -> ControlRecord:
    """Run an attempt up to where the log would commit it."""
    record = ControlRecord("log", Token(txid, attempt), txid - 1)
    state.control.begin(record)
    state.beginCommit(record)
    for _ in range(letters):
        state.send(LETTER % txid)
    state.commit(record)
    return state.control.ready(record)


def committed(state: LetterFolderState) -> list[tuple[int, int]]:
    return [(batch, number) for batch, number, _ in state.getTuples()]


def files(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*/*.jsonl"))


def test_a_batch_is_a_file_of_lines_that_counts_once_it_is_announced(tmp_path: Path) -> None:
    state = opened(tmp_path)
    state.control.announce(written(state, 1, letters=2))
    state.control.announce(written(state, 2, letters=0))
    ready = written(state, 3)
    assert committed(opened(tmp_path)) == [(1, 1), (1, 2)]
    state.control.announce(ready)
    assert committed(opened(tmp_path)) == [(1, 1), (1, 2), (3, 1)]
    assert files(tmp_path) == [1, 3]
    assert prefixes_in(tmp_path) == ["dead_letters.a/b"]


@pytest.mark.parametrize("letters", [0, 1])
def test_what_an_attempt_has_left_goes_when_the_next_one_begins(
    tmp_path: Path, letters: int
) -> None:
    written(opened(tmp_path), 1, letters=3)
    state = opened(tmp_path)  # after a kill
    state.control.announce(written(state, 1, attempt=1, letters=letters))
    assert committed(state) == [(1, 1)][:letters]


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_batch_has_left_that_was_committed_without_the_state_does_not_count(
    tmp_path: Path, restarted: bool
) -> None:
    state = opened(tmp_path)
    written(state, 1)
    record = ControlRecord("log", Token(2, 0), 1, {1: 1})  # another attempt had nothing to do
    if restarted:
        state = opened(tmp_path)
        state.control.catch_up(record, lambda found: None)
        assert committed(state) == files(tmp_path) == []
    state.control.begin(record)
    state.control.announce(state.control.ready(record))
    assert committed(state) == files(tmp_path) == []


def test_a_committed_batch_stays_though_the_log_has_forgotten_which_attempt_it_was(
    tmp_path: Path,
) -> None:
    state = opened(tmp_path)
    state.control.announce(written(state, 1, attempt=3))
    state.control.announce(written(state, 2))  # whose record knows of no other attempts
    assert committed(state) == [(1, 1), (2, 1)]


def test_letters_of_batches_that_no_log_has_committed_go_when_a_run_begins(tmp_path: Path) -> None:
    state = opened(tmp_path)
    state.control.announce(written(state, 1))
    [first] = tmp_path.glob("*/*.jsonl")
    first.with_name(f"{3:020d}.jsonl").write_bytes(LETTER % 3)
    state = opened(tmp_path)
    for txid in (2, 3):
        state.control.announce(written(state, txid, letters=0))
    assert committed(state) == [(1, 1)]


def test_a_writer_that_was_overtaken_writes_nothing(tmp_path: Path) -> None:
    late, state = opened(tmp_path), opened(tmp_path)
    its = ControlRecord("log", Token(1, 0), 0)
    late.control.begin(its)
    late.beginCommit(its)
    late.send(LETTER % 1)
    ready = written(state, 1, attempt=1, letters=0)
    with pytest.raises(StaleBatchError):
        late.commit(its)
    with pytest.raises(StaleBatchError):
        late.control.ready(its)
    state.control.announce(ready)
    assert committed(state) == files(tmp_path) == []


def test_a_lock_that_another_process_keeps_is_a_store_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_folder, "_PATIENCE", 0.0)
    state = opened(tmp_path)
    state.control.announce(written(state, 1))
    [lock] = tmp_path.glob("*/.lock")
    with lock.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StateUnavailableError, match="another process has had its lock"):
            written(state, 2)
    assert committed(state) == [(1, 1)]


def test_what_a_killed_process_has_not_finished_is_removed(tmp_path: Path) -> None:
    state = opened(tmp_path)
    state.control.announce(written(state, 1))
    [folder] = tmp_path.iterdir()
    (folder / "0123456789abcdef.tmp").write_bytes(b"half")
    written(opened(tmp_path), 2)
    assert list(folder.glob("*.tmp")) == []


def test_a_folder_that_is_not_what_the_log_has_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoStateError):
        committed(opened(tmp_path))
    state = opened(tmp_path)
    state.control.announce(written(state, 1))
    [path] = tmp_path.glob("*/*.jsonl")
    for line in (b"[1]\n", b"[" * 100_000 + b"\n"):
        path.write_bytes(line)
        with pytest.raises(CorruptStateError, match="a dead letter"):
            committed(state)
    path.with_name(".control").unlink()
    with pytest.raises(UnownedStateError, match="the file 0{19}1.jsonl"):
        written(opened(tmp_path), 1)
    with pytest.raises(StateError, match="keeps letters by their batch"):
        state.control._backing.multiGet([])


def test_a_url_names_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert LetterFolder.of(StateURL.parse("sqlite:letters.db")) is None
    folder = LetterFolder.of(StateURL.parse("file:letters"))
    assert folder is not None
    assert folder.named("a") == LetterFolder(tmp_path / "letters", "a")
    assert folder.named("a").named("b").identity == ("folder", f"{tmp_path}/letters", "a")
    for wrong in ("file:", "file://host/letters", "file:letters?kind=opaque"):
        with pytest.raises(StateURLError):
            LetterFolder.of(StateURL.parse(wrong))
