"""Entries survive the trip to disk, and what would not is refused."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import replace
from typing import Any

import pytest

from trident.log.entry import ACTIVE, FORMAT, MOMENT, LogEntry, check_metadata
from trident.log.errors import CorruptLogError, MetadataError
from trident.states.values import Token

FULL = LogEntry(
    number=7,
    writer="1-ab",
    log_id="a1",
    begun=Token(5, 2),
    committed=4,
    base=1,
    clock="dataframe",
    query_id="q",
    streams={"words": "word string", "Wörter": "n long"},
    states={"count": Token(4, 0)},
    kinds={"count": "opaque"},
    topology={"states": {"count": {"by": "Count"}}, "sources": {"words": "Words"}},
    metadata={"words": {"offset": [1, 2.5, None, True, "é"]}},
    planned={"words": 3},
    retried={2: 1, 3: -1},
    digest="d",
    adopted=("a0",),
    successor=("a2", "/elsewhere"),
)


@pytest.mark.parametrize("entry", [FULL, LogEntry(1, "w", "a1", begun=Token(1, 0), committed=0)])
def test_comes_back_equal(entry: LogEntry) -> None:
    found = LogEntry.decode(entry.encode(), "7.json")
    assert found == entry
    assert isinstance(found.begun, Token)
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_what_a_new_window_asks_of_a_batch_under_way_does_not_change_its_plan() -> None:
    asked = replace(FULL, planned={"words": 3, MOMENT: 17, ACTIVE: {"words": ["words"]}})
    assert asked.plan == FULL.plan is not None
    assert replace(FULL, planned={MOMENT: 17}).plan is None


def test_an_entry_from_before_kinds_were_kept_has_none() -> None:
    line = FULL.encode().splitlines()[0].replace(b'"kinds":{"count":"opaque"},', b"")
    found = LogEntry.decode(b"%s\n%08x\n" % (line, zlib.crc32(line)), "7.json")
    assert found == replace(FULL, kinds={})


def test_an_entry_from_before_topologies_were_kept_has_none() -> None:
    kept = b'"topology":{"states":{"count":{"by":"Count"}},"sources":{"words":"Words"}},'
    line = FULL.encode().splitlines()[0].replace(kept, b"")
    found = LogEntry.decode(b"%s\n%08x\n" % (line, zlib.crc32(line)), "7.json")
    assert found == replace(FULL, topology={})


def test_every_truncation_and_every_flipped_byte_is_found() -> None:
    data = FULL.encode()
    for length in range(len(data)):
        with pytest.raises(CorruptLogError, match=r"/log/7\.json"):
            LogEntry.decode(data[:length], "/log/7.json")
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(CorruptLogError):
            LogEntry.decode(bytes(damaged), "/log/7.json")


def test_an_unknown_format_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident.log.entry.FORMAT", FORMAT + 1)
    data = FULL.encode()
    monkeypatch.undo()
    with pytest.raises(CorruptLogError, match=f"format {FORMAT + 1}, this version reads {FORMAT}"):
        LogEntry.decode(data, "7.json")


def test_the_error_warns_of_deleting_and_pickles() -> None:
    error = CorruptLogError("/log/7.json", "truncated")
    assert "Don't delete it" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "value", [None, 1, 2.5, "x", True, [], {}, [1, {"a": [None]}], 2**80, "\u2028\ud7ff"]
)
def test_metadata_of_json_values_is_taken(value: Any) -> None:
    assert check_metadata({"s": value}) == {"s": value}


@pytest.mark.parametrize(
    "value", [(1,), {1: 2}, b"x", float("nan"), float("inf"), {1}, object(), Token(1, 2)]
)
def test_metadata_that_would_change_is_refused(value: Any) -> None:
    with pytest.raises(MetadataError, match="stream 's'"):
        check_metadata({"s": {"deep": [value]}})
