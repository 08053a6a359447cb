"""``python -m trident dead-letters``, and what puts them back as a stream."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trident.api.topology import TridentTopology
from trident.backends import kafka
from trident.backends.memory import MemoryMapState
from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.batch.watchpoints import POINTS, watching
from trident.cli.main import main
from trident.errors import PlanError
from trident.operations.builtin import Sum
from trident.operations.dead_letters import KeepLetters, letter
from trident.operations.emitted import ListCollector
from trident.operations.letter_folder import LetterFolder
from trident.plan.dead_letters import with_dead_letters
from trident.spouts.dead_letters import DeadLetterSpout, read_letters
from trident.spouts.fixed import FixedBatchSpout
from trident.states.state import StateFactory
from trident.states.values import Token
from trident.tuples import TridentTuple

DAY = date(2026, 1, 2)
FIELDS = "text string, day date"
ROWS = [("1", DAY), ("x\ty\ud800", DAY), ("3", None), ("z", DAY), ("5", None)]
LETTERS = "dead_letters.numbers"
PLACES = ["sqlite:{}/letters.db", "file:{}/letters"]


def parsed(text: str) -> int:
    return int(text)


def mended(text: str) -> int:
    return int(text) if text.isdigit() else 100


def play(folder: Path, kept: str | StateFactory | None, again: str | None = None) -> None:
    """Sum the numbers of texts; where the letters are put `again`, what was bad is 100."""
    topology = TridentTopology()
    texts = topology.newStream("numbers", FixedBatchSpout(FIELDS, 2, *ROWS))
    if again is not None:
        old = topology.newStream("numbers again", DeadLetterSpout(again, FIELDS))
        texts = topology.merge(texts, old)
    number = mended if again else parsed
    numbers = texts.withColumn("n long", number, "text", on_error="dead-letter")
    sums = f"sqlite:{folder / 'sums.db'}"
    numbers.persistentAggregate(sums, "n", Sum(), "sum")
    with topology.start(None, folder / "log", trigger="available", dead_letters=kept) as run:
        run.awaitTermination(60)


def opened(url: str) -> Any:
    """The state of dead letters at a URL."""
    parsed = StateURL.parse(url)
    return (LetterFolder.of(parsed) or state_from_url(parsed)).makeState()


def total(folder: Path) -> int:
    state = state_from_url(f"sqlite:{folder / 'sums.db'}?prefix=sum").makeState()
    return int(state.get())


@pytest.mark.parametrize("place", PLACES)
def test_letters_are_listed_shown_and_put_back(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = place.format(tmp_path)
    play(tmp_path, url)
    assert total(tmp_path) == 9
    assert main(["dead-letters", "list", url]) == 0
    error = "ValueError: invalid literal for int() with base 10: 'x\\ty\\ud800'"
    step = 'withColumn(n, parsed, text, on_error="dead-letter")'
    assert capsys.readouterr().out.splitlines()[0] == f"1\t{LETTERS}\t{step}\t{error}"
    assert main(["dead-letters", "show", f"{url}?prefix={LETTERS}", "--batch", "2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["tuple"] == {"text": "z", "day": {"$date": "2026-01-02"}}
    assert main(["dead-letters", "show", url, "--step", "other"]) == 0
    assert capsys.readouterr().out == ""
    for _ in range(2):  # the second time all are there already
        play(tmp_path, url, again=f"{url}?prefix={LETTERS}")
        assert total(tmp_path) == 209


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("point", POINTS)
def test_a_run_that_dies_anywhere_keeps_each_letter_once(
    tmp_path: Path, point: str, place: str
) -> None:
    url = place.format(tmp_path)

    def die(reached: str, token: Token) -> None:
        if reached == point and token.txid == 2:
            raise RuntimeError("it dies here")

    with pytest.raises(RuntimeError, match="it dies here"), watching(die):
        play(tmp_path, url)
    play(tmp_path, url)
    assert total(tmp_path) == 9
    with closing(opened(f"{url}?prefix={LETTERS}")) as state:
        assert [(each.batch, each.tuple["text"]) for each in read_letters(state)] == [
            (1, "x\ty\ud800"),
            (2, "z"),
        ]


def test_a_topic_takes_a_letter_as_a_record() -> None:
    class Topic:
        def __init__(self) -> None:
            self.sent: list[bytes] = []

        def send(self, value: bytes) -> None:
            self.sent.append(value)

    plan = TridentTopology()
    plan.newStream("n", FixedBatchSpout("n long", 1)).map(abs, on_error="dead-letter")
    [state] = with_dead_letters(plan.plan(), "kafka://one:9092,two/letters").states
    assert state.state.factory == kafka.sink(
        "one:9092,two:9092", "letters", prefix="dead_letters.n"
    )
    topic = Topic()
    made = letter("numbers", 7, "parse", "ValueError: no\nnumber", {"a": 1.5, "b": object})
    KeepLetters().updateState(topic, [TridentTuple(made)], ListCollector("KeepLetters", 0))
    told = json.loads(topic.sent[0])
    assert (told["batch_group"], told["batch"], told["step"]) == ("numbers", 7, "parse")
    assert told["error"] == "ValueError: no\\nnumber"
    assert json.loads(told["tuple"]) == {"a": 1.5, "b": "<class 'object'>"}


@pytest.mark.parametrize("place", PLACES)
def test_where_there_are_none_the_command_says_so(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dead-letters", "list", place.format(tmp_path)]) == 2
    scheme, _, _ = place.partition(":")
    assert f"there are no dead letters at '{scheme}:" in capsys.readouterr().err


def test_a_table_takes_letters_as_rows(tmp_path: Path) -> None:
    database = tmp_path / "letters.db"
    play(tmp_path, f"sqlite:{database}?table=bad")
    found = sqlite3.connect(database).execute("SELECT batch_group, batch, tuple FROM bad")
    assert found.fetchall() == [
        ("numbers", 1, '{"text": "x\\ty\\ud800", "day": {"$date": "2026-01-02"}}'),
        ("numbers", 2, '{"text": "z", "day": {"$date": "2026-01-02"}}'),
    ]


def test_letters_without_a_place_are_refused_and_a_place_without_letters(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="nothing keeps the dead letters of the step at .*withCol"):
        play(tmp_path, None)
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n long", 1)).map(abs).persistentAggregate(
        MemoryMapState.Factory(), "n", Sum(), "sum"
    )
    with pytest.raises(PlanError, match="dead_letters= is given, and no step has any"):
        topology.start(dead_letters="sqlite:letters.db")
