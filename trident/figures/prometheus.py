"""Figures in the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


class Metric(NamedTuple):
    """A metric, as it is documented in ``docs/monitoring.md``."""

    name: str
    kind: str
    help: str


_STATUSES = ("running", "stopped", "failed")

STARTED = Metric(
    "trident_start_time_seconds", "gauge", "When the run started, in seconds since 1970."
)
STATUS = Metric("trident_group_status", "gauge", "1 for the status that a group has.")
TXID = Metric("trident_txid", "gauge", "The last committed batch.")
RATE = Metric("trident_tuples_per_second", "gauge", "Tuples per second, over ten seconds.")
LAG = Metric("trident_lag_tuples", "gauge", "Tuples that wait in the sources, where known.")
HELD_BACK = Metric(
    "trident_lag_held_back_tuples", "gauge", "Records behind open transactions, where known."
)
SUMS = {
    "batches": Metric("trident_batches_total", "counter", "Batches that are finished."),
    "tuples": Metric("trident_tuples_total", "counter", "Tuples that came from the sources."),
    "attempts": Metric("trident_attempts_total", "counter", "Attempts of batches."),
    "keys_read": Metric("trident_keys_read_total", "counter", "Keys read from states."),
    "keys_written": Metric("trident_keys_written_total", "counter", "Keys written to states."),
    "cache_hits": Metric("trident_cache_hits_total", "counter", "Keys that caches answered."),
    "late": Metric("trident_late_tuples_total", "counter", "Tuples too late for all windows."),
    "dead_letters": Metric("trident_dead_letters_total", "counter", "Batches given up."),
}
FAILURES = Metric("trident_failed_attempts_total", "counter", "Attempts that failed, and why.")
STEPS = Metric("trident_step_seconds_total", "counter", "Seconds that steps of batches took.")
CALLS = Metric("trident_queries_total", "counter", "Calls of queries.")
FAILED = Metric("trident_failed_queries_total", "counter", "Calls that got no answer.")
WAITING = Metric("trident_waiting_queries", "gauge", "Calls in the queue.")
SECONDS = Metric("trident_query_seconds", "histogram", "How long callers waited.")


def text(figures: Mapping[str, Any]) -> str:
    """Return figures as Prometheus' text.

    Parameters
    ----------
    figures : mapping
        What ``run.figures()`` returns.

    Examples
    --------
    >>> figures = {"since": "1970-01-01T00:00:01.500+00:00", "groups": [], "queries": []}
    >>> print(text(figures), end="")
    # HELP trident_start_time_seconds When the run started, in seconds since 1970.
    # TYPE trident_start_time_seconds gauge
    trident_start_time_seconds 1.5
    """
    groups = [(_labels(group), group) for group in figures["groups"]]
    queries = [({"function": each["function"]}, each) for each in figures["queries"]]
    started = datetime.fromisoformat(figures["since"]).timestamp()
    lines = [*_metric(STARTED, [({}, started)])]
    lines += _metric(STATUS, _statuses(groups))
    lines += _metric(TXID, [(at, group["txid"]) for at, group in groups])
    lines += _metric(RATE, [(at, group["tuples_per_second"]) for at, group in groups])
    lines += _metric(LAG, [(at, (group["lag"] or {}).get("tuples")) for at, group in groups])
    held = [(at, (group["lag"] or {}).get("held_back")) for at, group in groups]
    lines += _metric(HELD_BACK, held)
    for figure, metric in SUMS.items():
        lines += _metric(metric, [(at, group[figure]) for at, group in groups])
    lines += _metric(FAILURES, _by(groups, "failures", "reason"))
    lines += _metric(STEPS, _by(groups, "seconds", "step"))
    lines += _metric(CALLS, [(at, query["calls"]) for at, query in queries])
    lines += _metric(FAILED, [(at, query["failed"]) for at, query in queries])
    lines += _metric(WAITING, [(at, query["waiting"]) for at, query in queries])
    if queries:
        lines += _head(SECONDS)
        for at, query in queries:
            lines += _histogram(SECONDS.name, at, query)
    return "".join(f"{line}\n" for line in lines)


def _labels(group: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a group; of several runs of one server also which it is."""
    run = {"run": str(group["run"])} if "run" in group else {}
    return {**run, "group": group["group"]}


def _statuses(groups: Iterable[tuple[Labels, Any]]) -> Iterator[tuple[Labels, int]]:
    for at, group in groups:
        for status in _STATUSES:
            yield {**at, "status": status}, int(group["status"] == status)


def _by(
    groups: Iterable[tuple[Labels, Any]], figure: str, label: str
) -> Iterator[tuple[Labels, float]]:
    for at, group in groups:
        for name, value in group[figure].items():
            yield {**at, label: name}, value


def _histogram(name: str, at: Labels, query: Mapping[str, Any]) -> Iterator[str]:
    for bound, count in [*query["within"].items(), ("+Inf", query["timed"])]:
        yield _line(f"{name}_bucket", {**at, "le": bound}, count)
    yield _line(f"{name}_sum", at, query["seconds"])
    yield _line(f"{name}_count", at, query["timed"])


def _metric(metric: Metric, samples: Iterable[tuple[Labels, float | None]]) -> Iterator[str]:
    """The lines of a metric; none where it has no values."""
    known = [(at, value) for at, value in samples if value is not None]
    if known:
        yield from _head(metric)
        yield from (_line(metric.name, at, value) for at, value in known)


def _head(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(each)}"' for label, each in labels.items())
    return f"{name}{{{shown}}} {value!r}" if shown else f"{name} {value!r}"


def _escaped(text: str) -> str:
    whole = text.encode(errors="replace").decode()  # a name may hold lone surrogates
    return whole.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
