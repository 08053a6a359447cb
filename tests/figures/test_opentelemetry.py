"""The spans of a run, as an exporter sees them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, Tracer

from tests.figures.topologies import counted, fed, words
from trident import TridentTopology
from trident.drpc.errors import DRPCExecutionError
from trident.errors import FailedException, OperationError
from trident.figures.opentelemetry import STEPS, trace


class Traced:
    """A tracer, and what it has exported."""

    def __init__(self) -> None:
        self._exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    @property
    def names(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]


@pytest.fixture
def traced() -> Traced:
    return Traced()


def test_a_batch_is_a_span_with_its_steps_below_it(traced: Traced) -> None:
    spout = fed()
    with counted(spout).start() as run:
        trace(run, traced.tracer)
        spout.feed([["cat"], ["the"]])
    [batch] = traced.named("batch words")
    assert batch.parent is None
    assert batch.status.status_code is StatusCode.UNSET
    found: Any = batch.attributes
    assert (found["trident.txid"], found["trident.tuples"], found["trident.attempts"]) == (1, 2, 1)
    steps = [span for span in map(traced.named, STEPS) for span in span]
    assert [span.name for span in steps] == [name for name in STEPS if name != "batch words"]
    at = batch.start_time
    for step in steps:
        assert step.parent is not None
        assert step.parent.span_id == batch.context.span_id
        assert step.start_time == pytest.approx(at, abs=2000)
        at = step.end_time
    assert at == pytest.approx(batch.end_time, abs=2000)
    [ran] = traced.named("run")
    assert set(ran.attributes or {}) == {"trident.seconds.compute", "trident.seconds.write"}


def test_failed_attempts_are_events_of_their_batch(traced: Traced) -> None:
    spout, failing = fed(), [True]

    def once(word: str) -> str:
        if failing and failing.pop():
            raise FailedException("the geo service timed out")
        return word

    topology = TridentTopology()
    topology.newStream("words", spout).map(once, "word").peek(lambda word: None)
    with topology.start() as run:
        trace(run, traced.tracer)
        spout.feed([["cat"]])
        spout.feed([["cat"]])
    first, second = traced.named("batch words")
    [event] = first.events
    told: Any = event.attributes
    assert event.name == "exception"
    assert told["exception.type"] == "FailedException"
    assert told["exception.message"] == "the geo service timed out"
    assert (told["trident.attempt"], told["trident.reason"]) == (0, "failed")
    assert "in once" in told["exception.stacktrace"]
    assert first.start_time is not None
    assert first.end_time is not None
    assert first.start_time <= event.timestamp <= first.end_time
    assert not second.events


def test_a_batch_with_which_its_group_fails_has_an_error(traced: Traced) -> None:
    topology = TridentTopology()
    stream = topology.newStream("words", spout := fed())
    stream.map(lambda word: 1 / 0, "n").peek(lambda n: None)
    run = topology.start()
    trace(run, traced.tracer)
    with pytest.raises(OperationError), run:
        spout.feed([["cat"]])
    [batch] = traced.named("batch words")
    assert batch.status.status_code is StatusCode.ERROR
    found: Any = batch.attributes
    assert (found["trident.txid"], found["error.type"]) == (1, "ZeroDivisionError")
    assert len(batch.events) == 1


def test_a_query_is_a_span_below_that_of_its_caller(traced: Traced) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("one").map(lambda args: 1 // len(args), "n")
    with topology.start() as run:
        trace(run, traced.tracer)
        with traced.tracer.start_as_current_span("caller") as caller:
            run.drpc.execute("one", "a")
        with pytest.raises(DRPCExecutionError):
            run.drpc.execute("one", "")
    answered, failed = traced.named("query one")
    assert answered.parent == caller.get_span_context()
    assert answered.attributes == {"trident.function": "one"}
    assert failed.parent is None
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "DRPCExecutionError"


def test_what_is_not_traced_any_more_makes_no_spans(traced: Traced) -> None:
    with counted(words()).start() as run:
        with trace(run, traced.tracer):
            pass
        run.drpc.execute("count", "cat")
    assert traced.names == []


def test_without_the_package_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with counted(words()).start() as run, pytest.raises(ImportError, match=r"\[opentelemetry\]"):
        trace(run)
