"""States as DataFrames: every key once, as of one committed batch, or an error."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tests.states.test_parts import begin, opened, write
from trident import states_frame
from trident.errors import NoStateError, StateError, StateUnavailableError, UsageError
from trident.spark import state_frame
from trident.states import KeepUntil
from trident.testing.servers.promised import Served

pytestmark = pytest.mark.spark

WORDS = {
    **{"": 1, "\0": 2, "ä\n\x1b[2J": 3, "🐄": -(2**63)},
    **{f"w{number}": number for number in range(3_000)},
}


@pytest.fixture(params=["sqlite", "redis", "hash", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    own = uuid4().hex
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/s.db?prefix={own}"
    if request.param == "memory":
        return f"memory:{own}?prefix=x"
    server = request.getfixturevalue("redis_server").url.replace("//", "//default:s3cret@")
    layout = "&layout=hash" if request.param == "hash" else ""
    return f"{server}?prefix={own}{layout}"


def counted(words: dict[str, Any]) -> dict[Any, Any]:
    return {(word,): count for word, count in words.items()}


def values_of(frame: DataFrame) -> dict[str, Any]:
    rows = frame.collect()
    found = {row[0]: row[1] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def txid_of(frame: DataFrame) -> int:
    txid: int = frame.schema.fields[-1].metadata["txid"]
    return txid


def test_a_state_is_read_as_of_the_last_committed_batch_and_shows_no_password(
    url: str, spark: SparkSession
) -> None:
    with closing(opened(url)) as state:
        write(state, 1, counted(WORDS))
        write(state, 2, counted({"gone": 1}))
        write(state, 3, counted({"gone": None, "w1": 7}))
        state.beginCommit(begin(state, 4, 3))
        state.multiPut([("w2",), ("new",)], [None, 1])
        state.commit(4)
        frame = states_frame(spark, url, "word, count", partitions=3)
        assert dict(frame.dtypes) == {"word": "string", "count": "bigint"}
        assert values_of(frame) == {**WORDS, "w1": 7}
        assert txid_of(frame) == 3
        write(state, 5, counted({"w1": 8}))
        write(state, 6, counted({"w1": 9}))
        assert values_of(frame)["w1"] == 7, "a frame is of its batch for ever"
    ran: Any = spark._jsparkSession.sharedState().statusStore().executionsList()  # type: ignore[attr-defined]
    plans = [ran.apply(number).physicalPlanDescription() for number in range(ran.size())]
    assert plans
    assert not [plan for plan in plans if "s3cret" in plan]


def test_types_are_those_of_some_values_or_as_declared(spark: SparkSession, tmp_path: Path) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    place = f"sqlite:{tmp_path}/s.db?prefix=x"
    with closing(opened(place)) as state:
        ends = KeepUntil({"n": 1, "tags": ["a"]}, datetime(2999, 1, 1, tzinfo=UTC))
        ended = KeepUntil({"n": 1}, datetime(2020, 1, 1, tzinfo=UTC))
        write(
            state,
            1,
            {
                (None, noon, Decimal("1.50"), b"\xff"): {"n": 2.5, "tags": None},
                (date(2026, 1, 2), noon, Decimal(2), b""): ends,
                (date(2026, 1, 3), noon, Decimal(2), b""): ended,
            },
        )
    frame = states_frame(spark, place)
    assert [kind for _, kind in frame.dtypes] == [
        *("date", "timestamp", "decimal(38,18)", "binary"),
        "struct<n:double,tags:array<string>>",
    ]
    assert [name for name, _ in frame.dtypes] == ["key_1", "key_2", "key_3", "key_4", "value"]
    assert sorted(frame.select("key_1", "key_3", "value").collect(), key=lambda row: row[1]) == [
        Row(key_1=None, key_3=Decimal("1.50"), value=Row(n=2.5, tags=None)),
        Row(key_1=date(2026, 1, 2), key_3=Decimal(2), value=Row(n=1.0, tags=["a"])),
    ]
    kind = "day date, at timestamp, price decimal(9,2), data binary, n map<string,double>"
    with pytest.raises(UsageError, match=r"no map<string,double>, the type of the column 'n', in"):
        states_frame(spark, place, kind)


def test_a_single_value_is_one_row(spark: SparkSession, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/s.db?prefix=x"
    with closing(opened(place)) as state:
        write(state, 1, {tuple(state.key): 17})
    frame = states_frame(spark, place, "the.count")
    assert (frame.columns, frame.collect(), txid_of(frame)) == (["the.count"], [(17,)], 1)
    assert states_frame(spark, place).collect() == [Row(value=17)]


def test_a_read_that_batches_overtake_begins_anew(
    spark: SparkSession, redis_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{redis_server.url}?prefix={uuid4().hex}"
    with closing(opened(url)) as state:
        write(state, 1, counted(dict.fromkeys(WORDS, 1)))
    goes_on(monkeypatch, url, 2)
    frame = states_frame(spark, url, "word string, count long")
    assert txid_of(frame) == 5
    assert values_of(frame) == dict.fromkeys(WORDS, 5)


def goes_on(monkeypatch: pytest.MonkeyPatch, url: str, times: int) -> None:
    """Have two batches go on before the tasks begin, so many times."""
    read, txid = state_frame._read_in_tasks, 1

    def read_later(*arguments: Any) -> Any:
        nonlocal txid, times
        if times:
            times -= 1
            with closing(opened(url)) as state:
                for _ in range(2):
                    txid += 1
                    write(state, txid, counted(dict.fromkeys(WORDS, txid)))
        return read(*arguments)

    monkeypatch.setattr(state_frame, "_read_in_tasks", read_later)


def test_a_state_that_moves_on_for_ever_is_refused(
    spark: SparkSession, redis_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{redis_server.url}?prefix={uuid4().hex}"
    with closing(opened(url)) as state:
        write(state, 1, {("a",): 1})
    goes_on(monkeypatch, url, 99)
    with pytest.raises(StateUnavailableError, match="batches moved on during all 4 tries"):
        states_frame(spark, url, "word string, count long", partitions=1)


def test_one_that_shows_a_moment_is_read_all_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path}/s.db?prefix=x"
    with closing(opened(url)) as state:
        write(state, 1, counted(dict.fromkeys(WORDS, 1)))
    goes_on(monkeypatch, url, 99)
    frame = states_frame(spark, url, "word string, count long", partitions=2)
    assert values_of(frame) == dict.fromkeys(WORDS, txid_of(frame))
    assert txid_of(frame) == 9


def test_what_cannot_be_read_is_an_error_that_says_how(spark: SparkSession, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/s.db?prefix=x"
    with pytest.raises(NoStateError):
        states_frame(spark, place)
    with closing(opened(place)) as state:
        write(state, 1, {})
        with pytest.raises(UsageError, match="has no values, so the types .* schema="):
            states_frame(spark, place, "word, count long")
        assert states_frame(spark, place, "word string, count long").collect() == []
        write(state, 2, {("a", 1): 1})
        with pytest.raises(UsageError, match=r"keys such as tuple \('a', 1\); .* found 'word, n'"):
            states_frame(spark, place, "word, n")
        with pytest.raises(UsageError, match=r"has the key .* is for keys of 1 fields"):
            states_frame(spark, place, "word string, n long")
        write(state, 3, {("a", 1): "x", ("b", 1): 1})
        with pytest.raises(UsageError, match="no type takes the first values of the column 'n'"):
            states_frame(spark, place, "word, m, n")
        with pytest.raises(UsageError, match=r"str 'x' is no long, .* of the key tuple \('a', 1\)"):
            states_frame(spark, place, "word string, m long, n long")
    with pytest.raises(StateError, match="lists no keys, so it can't be read as a DataFrame"):
        states_frame(spark, "memcached://localhost:1?prefix=x")
    with pytest.raises(StateUnavailableError) as away:
        states_frame(spark, "redis://me:s3cret@localhost:1?prefix=x")
    assert "s3cret" not in str(away.value)
