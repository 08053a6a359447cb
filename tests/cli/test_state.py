"""``python -m trident state``: what is in a state, and a copy of it elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli import counted
from trident.backends.redis.store import RedisStore
from trident.backends.sqlite.backing_map import SQLiteMap
from trident.backends.urls import state_from_url
from trident.cli.main import main
from trident.errors import StateError
from trident.states import ControlRecord, OpaqueMap, PickleSerializer, Token, encode_key
from trident.states.maps.dropping import drop_state
from trident.testing.servers.promised import Served

COUNTED = "tests.cli.counted:topology/count"
WORDS = {"dog": 2, "cat": 1, "": 1, "[bird]": 1, "two\nlines": 1, "\x1b[2J": 1, "ä": 1}

Said = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command, and return what it prints: its output, or the one line of its error."""

    def run(*words: str, status: int = 0) -> str:
        assert main(words) == status
        found = capsys.readouterr()
        if found.err:
            assert not found.out
            [line] = found.err.splitlines()
            return line
        return found.out

    return run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a topology has counted, as a URL."""
    monkeypatch.setenv(counted.PLACE, f"sqlite:{tmp_path}/counts.db")
    with counted.topology().start(checkpoint=tmp_path / "log", trigger="available") as run:
        run.awaitTermination()
    return f"sqlite:{tmp_path}/counts.db"


def test_get_prints_what_is_committed_and_its_status_says_that_a_key_is_absent(
    place: str, said: Said
) -> None:
    assert said("state", "get", COUNTED, "dog") == "2\n"
    assert said("state", "get", f"{place}?prefix=count", '["dog"]', "cat") == "dog\t2\ncat\t1\n"
    assert said("state", "get", COUNTED, "dog", "cow", status=1) == "dog\t2\ncow\tnull\n"
    [line] = said("state", "get", COUNTED, "ä", "--json").splitlines()
    assert json.loads(line) == {"key": ["ä"], "value": 1}
    assert said("state", "get", COUNTED, status=1) == "null\n"  # there is no single value
    assert "begins as a JSON array" in said("state", "get", COUNTED, "[dog", status=2)


def test_every_key_is_on_one_line_by_which_get_finds_it(place: str, said: Said) -> None:
    keys = said("state", "keys", COUNTED).splitlines()
    assert len(keys) == len(WORDS)
    values = said("state", "get", COUNTED, *keys).splitlines()
    assert values == said("state", "keys", COUNTED, "--values").splitlines()
    assert not any("\x1b" in line for line in values)
    found = map(json.loads, said("state", "keys", COUNTED, "--values", "--json").splitlines())
    assert {each["key"][0]: each["value"] for each in found} == WORDS


def test_values_that_json_does_not_have_are_printed_too(tmp_path: Path, said: Said) -> None:
    url = f"sqlite:{tmp_path}/any.db?prefix=any&serializer=pickle"
    with closing(state_from_url(url).makeState()) as state:
        assert isinstance(state.serializer, PickleSerializer)
        state.beginCommit(1)
        state.multiPut([("set",), ("bytes",)], [{1}, b"\xff"])
        state.commit(1)
    assert said("state", "get", url, "set", "bytes") == 'set\t"{1}"\nbytes\t{"$binary":"/w=="}\n'


def test_info_tells_whose_the_state_is_and_how_it_is_kept(place: str, said: Said) -> None:
    told = json.loads(said("state", "info", COUNTED, "--json"))
    assert told.pop("log_id")
    assert told.pop("where").endswith("/counts.db")
    assert told == {
        "state": COUNTED,
        "prefix": "count",
        "layout": None,
        "kind": "opaque",
        "serializer": "JSONSerializer",
        "guarantee": told["guarantee"],
        "status": "batch 3 is committed",
        "committed": 3,
        "begun": [3, 0],
        "entries": 7,
    }
    assert "opaque map" in told["guarantee"]
    lines = said("state", "info", f"{place}?prefix=count").splitlines()
    assert "status      batch 3 is committed" in lines
    assert not any(line.startswith("guarantee") for line in lines)


@pytest.mark.parametrize(
    ("record", "status"),
    [
        (ControlRecord("a1", Token(0, 0)), "waits for its first batch"),
        (ControlRecord("a1", Token(3, 1), 2), "batch 2 is committed, attempt 1 of 3 has begun"),
        (
            ControlRecord("a1", Token(3, 1), 2, ready=True),
            "batch 2 is committed, attempt 1 of 3 is written",
        ),
        (
            ControlRecord("unfinished-copy:a1", Token(2, 0), 2),
            "an unfinished copy, as of batch 2: copy once more",
        ),
        (ControlRecord("given-back-to-storm", Token(2, 0), 2), "given back to Storm"),
    ],
)
def test_info_tells_what_a_state_is_in_the_middle_of(
    record: ControlRecord, status: str, tmp_path: Path, said: Said
) -> None:
    url = f"sqlite:{tmp_path}/counts.db?prefix=x"
    with closing(state_from_url(url).makeState()) as state:
        state.backing.putControl(record.encode(), None)
    assert json.loads(said("state", "info", url, "--json"))["status"] == status
    if "unfinished" in status:
        line = said("state", "get", url, "dog", status=1)
        assert f"state x in {tmp_path}/counts.db is an unfinished copy" in line


@pytest.mark.parametrize(
    ("name", "status", "problem"),
    [
        ("tests.cli.counted:topology", 2, "no state is named by"),
        ("tests.cli.counted:topology/cout", 2, "Did you mean 'count'?"),
        ("tests.cli.counted:nothing/count", 2, "can't be imported"),
        ("{place}", 2, "by default the state's name. There are: 'count'."),
        ("{place}?prefix=cuont", 1, "States there have the prefixes: 'count'"),
        ("ridis://cache/0?prefix=x", 2, "Did you mean 'redis'?"),
        ("redis://me:s3cret@127.0.0.1:1/0?prefix=x", 75, "nothing listens there"),
        ("memory:words?prefix=x", 2, "is in the memory of the process that runs"),
    ],
)
def test_what_names_no_state_is_one_line(
    name: str, status: int, problem: str, place: str, said: Said
) -> None:
    line = said("state", "info", name.format(place=place), status=status)
    assert problem in line
    assert "s3cret" not in line


def test_a_store_that_lists_no_keys_says_so(memcached_server: Served, said: Said) -> None:
    url = f"{memcached_server.url}?prefix={uuid4().hex}"
    state: Any = state_from_url(url).makeState()
    state.beginCommit(1)
    state.multiPut([("dog",)], [2])
    state.commit(1)
    assert said("state", "get", url, "dog") == "2\n"
    assert "can't list its entries" in said("state", "keys", url, status=1)
    assert "entries     unknown: this store lists no keys" in said("state", "info", url)
    assert "lists no keys" in said("state", "copy", url, "sqlite:other.db", status=1)


def test_a_copy_into_another_store_has_the_name_of_the_state(
    place: str, redis_server: Served, said: Said, tmp_path: Path
) -> None:
    own = f"count{uuid4().hex}"
    strings, hashed = f"{redis_server.url}?prefix={own}", f"{redis_server.url}?layout=hash"
    printed = said("state", "copy", COUNTED, strings)
    assert printed.startswith("7 entries as of batch 3 are in redis:")
    assert printed.endswith("compared one by one; 7 were written\n")
    assert said("state", "copy", COUNTED, strings).endswith("; 0 were written\n")
    told = json.loads(said("state", "copy", strings, hashed, "--json"))
    assert (told["entries"], told["written"], told["committed"]) == (7, 7, 3)
    assert said("state", "get", f"{hashed}&prefix={own}", "dog") == "2\n"
    assert said("state", "copy", f"{hashed}&prefix={own}", f"sqlite:{tmp_path}/back.db")
    here, back = (
        said("state", "keys", name, "--values").splitlines()
        for name in (COUNTED, f"sqlite:{tmp_path}/back.db?prefix={own}")
    )
    assert sorted(here) == sorted(back)


def test_a_password_is_not_repeated_by_the_help_either(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["state", "copy", "a", "b", "redis://me:s3cret@cache/0"])
    told = capsys.readouterr().err
    assert "redis://***@cache/0" in told
    assert "s3cret" not in told


def test_a_copy_by_a_function_has_its_keys_and_values(
    place: str, said: Said, tmp_path: Path
) -> None:
    target = f"sqlite:{tmp_path}/lengths.db"
    by = f"{counted.__name__}:with_length"
    assert "6 entries as of batch" in said("state", "copy", COUNTED, target, "--map", by)
    assert said("state", "get", f"{target}?prefix=count", '["dog", 3]') == "20\n"
    assert "is no function, but a 'str'" in said(
        "state", "copy", COUNTED, target, "--map", f"{counted.__name__}:PLACE", status=2
    )


def test_a_copy_into_its_own_place_is_refused(place: str, said: Said) -> None:
    assert "from and to are one place" in said("state", "copy", COUNTED, place, status=2)


def test_a_copy_of_another_kind_says_how_to_name_it(place: str, said: Said) -> None:
    target = f"{place}?prefix=other&kind=transactional"
    line = said("state", "copy", COUNTED, target, status=1)
    assert line.endswith("Give both the same kind=, that of the topology.")


def test_nobody_has_to_read_all_keys(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/many.db?prefix=many"
    with closing(state_from_url(url).makeState()) as state:
        assert isinstance(state, OpaqueMap)
        state.beginCommit(1)
        state.multiPut([(f"word {number}",) for number in range(20_000)], [1] * 20_000)
        state.commit(1)
    command = [sys.executable, "-m", "trident", "state", "keys", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"word 0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141
    assert encode_key(("word 0",)) == b"word 0"


def test_drop_says_what_would_go_and_removes_it_where_that_is_asked_for(
    place: str, said: Said
) -> None:
    url = f"{place}?prefix=count"
    told = said("state", "drop", url)
    assert told.startswith(f"would remove {len(WORDS)} entries of {url}, log id ")
    assert "--yes" in told
    assert said("state", "get", url, "dog") == "2\n"
    assert said("state", "drop", url, "--yes").startswith(f"removed {len(WORDS)} entries of {url}")
    assert "there is no state" in said("state", "drop", url, status=1)


def test_a_state_that_was_dropped_is_begun_anew(place: str, said: Said, tmp_path: Path) -> None:
    said("state", "drop", f"{place}?prefix=count", "--yes")
    with counted.topology().start(checkpoint=tmp_path / "new", trigger="available") as run:
        run.awaitTermination()
    assert said("state", "get", COUNTED, "dog") == "2\n"


def test_a_removal_that_was_cut_short_is_refused_and_goes_on(
    place: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{place}?prefix=count"
    with monkeypatch.context() as patched:
        patched.setattr(SQLiteMap, "drop", lambda *_: 1 / 0)
        state = state_from_url(url).makeState()
        with closing(state), pytest.raises(ZeroDivisionError):
            drop_state(state)
    assert "state drop URL --yes" in said("state", "get", url, "dog", status=1)
    assert "being removed" in said("state", "info", url)
    said("state", "drop", url, "--yes")
    assert "there is no state" in said("state", "get", url, "dog", status=1)


def test_a_state_that_cannot_be_listed_is_not_dropped(said: Said) -> None:
    url = "memcached://127.0.0.1:1?prefix=count"
    assert "can't be dropped" in said("state", "drop", url, "--yes", status=1)


def test_redis_without_a_prefix_is_not_dropped() -> None:
    backing = RedisStore(prefix="").open()
    with pytest.raises(StateError, match="without a prefix can't be dropped"):
        backing.drop(b"")
