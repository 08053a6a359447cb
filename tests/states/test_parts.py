"""A state read in parts by several readers: all of one committed batch, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from trident.backends.memory import MemoryMap, MemoryMapState
from trident.backends.urls import state_from_url
from trident.errors import NoStateError
from trident.states import OpaqueMap
from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn
from trident.states.maps.parts import read_part
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token

KEYS = [
    *[("",), ("\0",), ("ä", None), (1,), (False,), (1.5, b"\xff")],
    *((f"k{number}",) for number in range(40)),
]


def begin(state: StoredMap, txid: int, committed: int, log_id: str = "a") -> ControlRecord:
    record = ControlRecord(log_id, Token(txid, 0), committed)
    state.control.begin(record)
    return record


def write(state: StoredMap, txid: int, values: dict[Any, Any]) -> ControlRecord:
    """Batch `txid`, committed and announced."""
    record = begin(state, txid, txid - 1)
    state.beginCommit(record)
    state.multiPut(list(values), list(values.values()))
    state.commit(record)
    assert state.control.announce(record)
    return state.control.expect() or record


def read(state: StoredMap, record: ControlRecord | None, part: Any) -> list[Any]:
    return [row for page in read_part(state, record, part) for row in zip(*page, strict=True)]


def opened(url: str) -> StoredMap:
    state = state_from_url(url).makeState()
    assert isinstance(state, StoredMap)
    return state


@pytest.fixture(params=["memory", "sqlite"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredMap]:
    url = f"sqlite:{tmp_path}/s.db" if request.param == "sqlite" else f"memory:{uuid4().hex}"
    with closing(opened(f"{url}?prefix=x")) as made:
        yield made


@pytest.mark.parametrize("count", [1, 3, 7])
def test_the_parts_have_each_key_once(state: StoredMap, count: int) -> None:
    record = write(state, 1, dict.fromkeys(KEYS, 1))
    parts = state.backing.parts(count)
    found = [key for part in parts for key, _ in read(state, record, part)]
    assert sorted(map(repr, found)) == sorted(map(repr, KEYS))
    if state.backing.lasts:
        assert len(parts) == count


def test_more_parts_than_keys_are_not_made(tmp_path: Path) -> None:
    with closing(opened(f"sqlite:{tmp_path}/s.db?prefix=x")) as state:
        record = write(state, 1, {("a",): 1, ("b",): 2})
        parts = state.backing.parts(5)
        assert [row for part in parts for row in read(state, record, part)] == [
            (("a",), 1),
            (("b",), 2),
        ]


def test_every_part_is_of_the_batch_that_the_first_reader_found(state: StoredMap) -> None:
    record = write(state, 1, {("a",): 1, ("b",): 1})
    writing = begin(state, 2, 1)
    state.beginCommit(writing)
    state.multiPut([("a",), ("b",), ("c",)], [2, None, 2])
    state.commit(writing)
    expected = [(("a",), 1), (("b",), 1)]
    assert [sorted(read(state, record, part)) for part in state.backing.parts(1)] == [expected]
    assert state.control.announce(writing)
    assert [sorted(read(state, record, part)) for part in state.backing.parts(1)] == [expected]
    later = state.control.expect()
    assert [sorted(read(state, later, part)) for part in state.backing.parts(1)] == [
        [(("a",), 2), (("c",), 2)]
    ]


def test_a_key_that_a_later_batch_has_removed_is_not_missing_unnoticed(state: StoredMap) -> None:
    record = write(state, 1, {("a",): 1, ("b",): 1})
    write(state, 2, {("b",): None})
    begin(state, 3, 2)  # which may remove the tombstone
    with pytest.raises(BatchMovedOn):
        [read(state, record, part) for part in state.backing.parts(1)]


def test_an_entry_of_two_batches_later_is_refused(state: StoredMap) -> None:
    record = write(state, 1, {("a",): 1})
    write(state, 2, {("a",): 2})
    write(state, 3, {("a",): 3})
    with pytest.raises(BatchMovedOn):
        [read(state, record, part) for part in state.backing.parts(1)]


def test_a_state_that_begins_anew_or_again_from_old_data_meanwhile_is_refused(
    state: StoredMap,
) -> None:
    record = write(state, 1, {("a",): 1})
    for log_id, committed in ("another log", 1), (record.log_id, 0):
        state.control.replace(ControlRecord(log_id, record.token, committed))
        with pytest.raises(BatchMovedOn):
            [read(state, record, part) for part in state.backing.parts(1)]


@pytest.mark.parametrize("kind", ["transactional", "nontransactional"])
def test_a_state_that_keeps_one_batch_is_read_only_while_none_is_under_way(kind: str) -> None:
    state = opened(f"memory:{uuid4().hex}?prefix=x&kind={kind}")
    record = write(state, 1, {("a",): 1})
    assert read(state, record, None) == [(("a",), 1)]
    under_way = begin(state, 2, 1)
    for known in record, under_way:
        with pytest.raises(BatchMovedOn):
            read(state, known, None)


def test_a_snapshot_is_read_on_while_batches_go_on(tmp_path: Path) -> None:
    with closing(opened(f"sqlite:{tmp_path}/s.db?prefix=x")) as state:
        record = write(state, 1, {(f"k{n:05}",): 1 for n in range(5_001)})
        [part] = state.backing.parts(1)
        pages = read_part(state, record, part)
        assert len(next(pages)[0]) == 5_000
        with closing(opened(f"sqlite:{tmp_path}/s.db?prefix=x")) as writer:
            for txid in 2, 3, 4:
                write(writer, txid, {("k05000",): None if txid == 3 else txid})
        assert list(pages) == [([("k05000",)], [1])]


class Repeating(MemoryMap):
    """Lists a key twice, as Redis may."""

    def pages(self) -> Iterator[list[tuple[bytes, Any]]]:
        for entry in self.entries():
            yield [entry, entry]
            yield [entry]


def test_a_key_that_is_listed_twice_is_one_row() -> None:
    state = OpaqueMap(Repeating(uuid4().hex))
    record = write(state, 1, {("a",): 1, ("b",): 2})
    assert sorted(read(state, record, None)) == [(("a",), 1), (("b",), 2)]


def test_what_has_not_begun_is_no_empty_state(tmp_path: Path) -> None:
    with closing(opened(f"sqlite:{tmp_path}/s.db?prefix=x")) as state, pytest.raises(NoStateError):
        read(state, None, (None, None))
    assert read(MemoryMapState.Factory().makeState(), None, None) == []
