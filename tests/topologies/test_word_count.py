"""Word count, the topology that everything else grew from."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from tests.topologies.conftest import Engine, contents, feed
from trident.api.stream import TridentState
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.operations.builtin import Count, FilterNull, MapGet, Split, Sum
from trident.spouts.feeder import FeederBatchSpout


class WordCount:
    """Counts words; ``words(args)`` sums the counts of several."""

    def __init__(self, hint: int | None = None) -> None:
        self.topology = TridentTopology()
        self.spout = FeederBatchSpout("sentence string")
        self.memory = MemoryMapState.Factory()
        stream = self.topology.newStream("sentences", self.spout)
        words = stream.each("sentence", Split(), "word")
        self.state: TridentState = words.groupBy("word").persistentAggregate(
            self.memory, Count(), "count"
        )
        if hint is not None:
            self.state.parallelismHint(hint)
        (
            self.topology.newDRPCStream("words")
            .each("args", Split(), "word")
            .groupBy("word")
            .stateQuery(self.state, "word", MapGet(), "count")
            .each("count", FilterNull())
            .aggregate("count", Sum(), "sum")
        )

    @property
    def counts(self) -> dict[str, int]:
        return {word: count for (word,), count in contents(self.memory).items()}


def batch(*sentences: str | None) -> list[tuple[str | None]]:
    return [(sentence,) for sentence in sentences]


def test_counts_over_several_batches_are_those_of_a_plain_count(engine: Engine) -> None:
    words = ["the", "cow", "jumped", "over", "moon", "ÿ", "数", "🐄"]
    choose = random.Random(1)
    batches = [
        [" ".join(choose.choices(words, k=7)) for _ in range(choose.randrange(1, 9))]
        for _ in range(5)
    ]
    counted = WordCount()
    engine.play(counted.topology, counted.spout, *(batch(*sentences) for sentences in batches))
    assert counted.counts == Counter(
        word for sentences in batches for sentence in sentences for word in sentence.split()
    )


def test_queries_between_batches_see_every_committed_batch(engine: Engine) -> None:
    counted = WordCount()
    with engine.start(counted.topology) as run:
        ask = run.drpc.execute
        assert ask("words", "cat dog the man") == "[[0]]"
        feed(run, counted.spout, batch("hello the man said", "the"))
        assert (ask("words", "the"), ask("words", "hello")) == ("[[2]]", "[[1]]")
        feed(run, counted.spout, batch("the man on the moon", "where are you"))
        assert ask("words", "the") == "[[4]]"
        assert ask("words", "man") == "[[2]]"
        assert ask("words", "man where you the") == "[[8]]"


def test_empty_batches_change_nothing(engine: Engine) -> None:
    counted = WordCount()
    with engine.start(counted.topology) as run:
        feed(run, counted.spout, batch("hello the man said", "the"))
        feed(run, counted.spout, *([[]] * 5))
        assert run.drpc.execute("words", "the") == "[[2]]"
        feed(run, counted.spout, batch("the the"), [], batch("the"))
        assert run.drpc.execute("words", "the") == "[[5]]"
    assert counted.counts == {"hello": 1, "the": 5, "man": 1, "said": 1}


def test_a_batch_of_sentences_without_words_counts_none(engine: Engine) -> None:
    counted = WordCount()
    engine.play(counted.topology, counted.spout, batch("", "   ", None), batch("a"), batch(""))
    assert counted.counts == {"a": 1}


@pytest.mark.parametrize("hint", [1, 3])
def test_a_million_words_in_one_batch(engine: Engine, hint: int) -> None:
    counted = WordCount(hint)
    sentence = "the cow jumped over the moon and the dog laughed"
    engine.play(counted.topology, counted.spout, batch(*[sentence] * 100_000))
    assert counted.counts == {
        word: 100_000 * count for word, count in Counter(sentence.split()).items()
    }


def test_odd_words_are_counted_as_they_are(engine: Engine) -> None:
    words = ["é", "e\N{COMBINING ACUTE ACCENT}", "🐄", "数", "x" * 100_000, "'", "\\", '"[1]"']
    spout = FeederBatchSpout("word string")
    topology = TridentTopology()
    memory = MemoryMapState.Factory()
    stream = topology.newStream("words", spout)
    stream.groupBy("word").persistentAggregate(memory, Count(), "count")
    odd: list[Any] = [*words, None, "", " ", "\0", "\0trident.control", "a\0b"]
    engine.play(topology, spout, [(word,) for word in odd * 2], [(word,) for word in odd])
    assert contents(memory) == {(word,): 3 for word in odd}


@pytest.mark.spark
def test_counts_are_those_of_a_plain_spark_job(engine: Engine, spark: Any) -> None:
    choose = random.Random(2)
    sentences = [" ".join(choose.choices("abcdefgh", k=10)) for _ in range(200)]
    counted = WordCount(3)
    engine.play(counted.topology, counted.spout, batch(*sentences[:150]), batch(*sentences[150:]))
    frame = spark.createDataFrame([(sentence,) for sentence in sentences], "sentence string")
    job = frame.selectExpr("explode(split(sentence, ' ')) as word").groupBy("word").count()
    assert counted.counts == {row["word"]: row["count"] for row in job.collect()}


def test_an_answer_is_json_of_every_tuple(engine: Engine) -> None:
    counted = WordCount()
    topology = counted.topology
    (
        topology.newDRPCStream("each")
        .each("args", Split(), "word")
        .stateQuery(counted.state, "word", MapGet(), "count")
        .project("word, count")
    )
    with engine.start(topology) as run:
        feed(run, counted.spout, batch("a b a"))
        assert json.loads(run.drpc.execute("each", "a b c")) == [["a", 2], ["b", 1], ["c", None]]
        assert run.drpc.execute("each", "") == "[]"
