"""Spans of OpenTelemetry for batches and queries, made only for a run that is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from time import time
from typing import TYPE_CHECKING, Any, Protocol, Self

from trident.batch.events import AttemptFailed, Event, GroupEnded, QueryEnded
from trident.batch.listening import Listening
from trident.batch.progress import BatchProgress

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

__all__ = ["Tracing", "trace"]

STEPS = ("plan", "emit", "run", "begin", "ready", "commit", "announce", "acknowledge")
"""The steps of a batch that follow each other; the others are parts of ``run``."""
_MOST_EVENTS = 100


class Traced(Protocol):
    """A run, as `trident.api.run.Run` is one."""

    drpc: Any

    def listen(self, callback: Callable[[Event], object]) -> Listening: ...


class Tracing:
    """What `trace` returns: ends it by :meth:`stop`, or at the end of its block.

    Parameters
    ----------
    run : Run
        What is traced.
    tracer : Tracer
        What makes spans.
    """

    def __init__(self, run: Traced, tracer: Tracer) -> None:
        spans = _Spans(tracer)
        self._listening = [run.listen(spans.on_event)]
        if run.drpc is not None:
            self._listening.append(run.drpc.listen(spans.on_query))

    def stop(self) -> None:
        """Make no more spans; may be repeated."""
        for listening in self._listening:
            listening.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def trace(run: Traced, tracer: Tracer | None = None) -> Tracing:
    """Make spans of a run's batches and queries from now on.

    A batch is a span ``batch {group}``, the root of a trace, from the begin of its first attempt to
    its acknowledgement. Its steps are spans below it, failed attempts are events ``exception`` of
    it, the first 100. A batch with which the group fails, or that is dead-lettered, has the status
    ``ERROR``. A call of a query is a span ``query {function}``, below its caller's current one.

    Parameters
    ----------
    run : Run
        What is traced.
    tracer : Tracer, optional
        What makes spans; by default the global provider's tracer ``trident``.

    Returns
    -------
    Tracing
        Whose ``stop()`` ends it; a context manager.

    Raises
    ------
    ImportError
        When opentelemetry-api is not installed, with its ``pip install`` line.

    Notes
    -----
    Spans are made after a batch or query, in the thread that ran it. So give the provider a
    processor that exports in a thread of its own, as ``BatchSpanProcessor`` does.

    Examples
    --------
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> from trident import TridentTopology
    >>> exporter, provider = InMemorySpanExporter(), TracerProvider()
    >>> provider.add_span_processor(SimpleSpanProcessor(exporter))
    >>> topology = TridentTopology()
    >>> _ = topology.newDRPCStream("upper").map(str.upper, "text")
    >>> with topology.start() as run, trace(run, provider.get_tracer("trident")):
    ...     run.drpc.execute("upper", "cat")
    '[["CAT"]]'
    >>> [span.name for span in exporter.get_finished_spans()]
    ['query upper']
    """
    return Tracing(run, tracer or _api("trace").get_tracer("trident"))


def _api(module: str) -> Any:
    try:
        return import_module(f"opentelemetry.{module}")
    except ImportError as error:
        raise ImportError(
            f"spans need a package that can't be imported ({error}): "
            'pip install "trident-spark[opentelemetry]"'
        ) from error


class _Spans:
    """Makes spans of events; a group's events come one after the other."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._failed: dict[str, list[AttemptFailed]] = {}
        self._trace = _api("trace")
        self._root = _api("context").Context()

    def on_event(self, event: Event) -> None:
        """Make the span of a batch that is finished, or that its group has failed with."""
        match event:
            case AttemptFailed(group=group):
                failed = self._failed.setdefault(group, [])
                if len(failed) < _MOST_EVENTS:
                    failed.append(event)
            case BatchProgress(group=group, attempts=attempts) if attempts:
                self._finished(event, self._failed.pop(group, []))
            case GroupEnded(group=group, status="failed"):
                self._failed_with(event, self._failed.pop(group, []))

    def on_query(self, event: QueryEnded) -> None:
        """Make the span of a call, in the context of its caller."""
        end = time()
        attributes = {"trident.function": event.function}
        span = self._tracer.start_span(
            f"query {event.function}",
            attributes=attributes,
            start_time=_nanoseconds(end - event.seconds),
        )
        if event.error is not None:
            self._fail(span, event.error, "")
        span.end(_nanoseconds(end))

    def _finished(self, done: BatchProgress, failed: list[AttemptFailed]) -> None:
        steps = {step: took for step, took in done.seconds.items() if step in STEPS}
        began = done.at - sum(steps.values())
        attributes: dict[str, Any] = {
            "trident.attempts": done.attempts,
            "trident.engine": done.engine,
            "trident.tuples": done.tuples,
            "trident.keys_read": done.keys_read,
            "trident.keys_written": done.keys_written,
            "trident.cache_hits": done.cache_hits,
            "trident.late": done.late,
        }
        span = self._batch(done.group, done.txid, failed, began, attributes)
        if done.dead_letter is not None:
            self._fail(span, failed[-1].error if failed else "dead-letter", "dead-lettered")
        if span.is_recording():
            below = self._trace.set_span_in_context(span, self._root)
            parts = {
                f"trident.seconds.{part}": took
                for part, took in done.seconds.items()
                if part not in STEPS
            }
            for step, took in steps.items():
                step_span = self._tracer.start_span(
                    step,
                    context=below,
                    attributes=parts if step == "run" else None,
                    start_time=_nanoseconds(began),
                )
                began += took
                step_span.end(_nanoseconds(began))
        span.end(_nanoseconds(done.at))

    def _failed_with(self, end: GroupEnded, failed: list[AttemptFailed]) -> None:
        txid = failed[-1].txid if failed else None
        span = self._batch(end.group, txid, failed, end.at, {"trident.attempts": len(failed)})
        self._fail(span, end.error or "", end.message or "")
        span.end(_nanoseconds(end.at))

    def _batch(
        self,
        group: str,
        txid: int | None,
        failed: list[AttemptFailed],
        began: float,
        attributes: Mapping[str, Any],
    ) -> Span:
        if failed:
            began = failed[0].at - failed[0].seconds
        number = {} if txid is None else {"trident.txid": txid}
        span = self._tracer.start_span(
            f"batch {group}",
            context=self._root,
            attributes={"trident.group": group, **number, **attributes},
            start_time=_nanoseconds(began),
        )
        for attempt in failed:
            details: dict[str, Any] = {
                "exception.type": attempt.error,
                "exception.message": attempt.message,
                "trident.attempt": attempt.attempt,
                "trident.reason": attempt.reason,
            }
            if attempt.frame is not None:
                details["exception.stacktrace"] = attempt.frame
            span.add_event("exception", details, _nanoseconds(attempt.at))
        return span

    def _fail(self, span: Span, error: str, message: str) -> None:
        span.set_attribute("error.type", error)
        span.set_status(self._trace.StatusCode.ERROR, message or None)


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
