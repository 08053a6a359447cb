"""A start says which streams end in nothing, with the line that declared them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.topologies import sentences, word_count
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.operations.builtin import Count, Debug, FilterNull, Negate, Split


def told(caplog: pytest.LogCaptureFixture, step: Callable[[Stream], Any]) -> list[str]:
    topology = TridentTopology()
    step(sentences(topology))
    with (
        caplog.at_level(logging.WARNING, "trident"),
        topology.start(trigger="available") as run,
    ):
        run.awaitTermination()
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("step", "last"),
    [
        (lambda s: None, 'newStream("sentences", FixedBatchSpout)'),
        (lambda s: s.each("sentence", Split(), "word"), "each(sentence, Split(), word)"),
        (lambda s: s.groupBy("id").aggregate(Count(), "n"), "groupBy(id).aggregate(Count(), n)"),
        (lambda s: s.each("id", Negate(FilterNull())), "each(id, Negate(FilterNull()))"),
        (lambda s: s.minBy("id"), "partitionAggregate("),
    ],
)
def test_a_stream_that_nothing_keeps_or_shows_is_told_of(
    caplog: pytest.LogCaptureFixture, step: Callable[[Stream], Any], last: str
) -> None:
    [warning] = told(caplog, step)
    assert warning.startswith("stream 'sentences', declared at ")
    assert "topologies.py:" in warning
    assert f"ends in {last}" in warning
    assert "Add persistentAggregate(…) or peek(…)" in warning


@pytest.mark.parametrize(
    "step",
    [
        word_count,
        lambda s: s.peek(lambda id, sentence: None),
        lambda s: s.each("sentence", Debug()),
        lambda s: s.each("sentence", Negate(Debug())),
        lambda s: s.filter(lambda id, sentence: True),
        lambda s: (s.peek(lambda id, sentence: None), s.project("id")),
    ],
)
def test_a_stream_that_may_do_something_is_not(
    caplog: pytest.LogCaptureFixture, step: Callable[[Stream], Any]
) -> None:
    assert told(caplog, step) == []
