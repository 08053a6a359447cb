"""Figures for Prometheus, by its own client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

try:
    from prometheus_client import core, generate_latest
    from prometheus_client.registry import Collector
except ImportError as missing:
    advice = 'metrics need prometheus_client: pip install "trident-spark[drpc]"'
    raise ImportError(f"{advice} ({missing})") from missing

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_GAUGE, _COUNTER = core.GaugeMetricFamily, core.CounterMetricFamily
_STATUSES = ("running", "stopped", "failed")
_GROUP = (
    (_GAUGE, "txid", "txid", "The last committed batch."),
    (_GAUGE, "tuples_per_second", "tuples_per_second", "Tuples per second, over ten seconds."),
    (_GAUGE, "lag_tuples", "lag.tuples", "Tuples that wait in the sources, where known."),
    (_GAUGE, "lag_held_back_tuples", "lag.held_back", "Records behind open transactions."),
    (_COUNTER, "batches", "batches", "Batches that are finished."),
    (_COUNTER, "tuples", "tuples", "Tuples that came from the sources."),
    (_COUNTER, "attempts", "attempts", "Attempts of batches."),
    (_COUNTER, "keys_read", "keys_read", "Keys read from states."),
    (_COUNTER, "keys_written", "keys_written", "Keys written to states."),
    (_COUNTER, "cache_hits", "cache_hits", "Keys that caches answered."),
    (_COUNTER, "late_tuples", "late", "Tuples too late for all windows."),
    (_COUNTER, "dead_letters", "dead_letters", "Batches given up."),
)
_PARTS = (
    (_GAUGE, "group_status", "status", "status", "1 for the status that a group has."),
    (_COUNTER, "failed_attempts", "reason", "failures", "Attempts that failed, and why."),
    (_COUNTER, "step_seconds", "step", "seconds", "Seconds that steps of batches took."),
    (_COUNTER, "bad_tuples", "step", "bad_tuples", "Tuples that a step failed with and left out."),
)
_QUERY = (
    (_COUNTER, "queries", "calls", "Calls of queries."),
    (_COUNTER, "failed_queries", "failed", "Calls that got no answer."),
    (_GAUGE, "waiting_queries", "waiting", "Calls in the queue."),
)
"""Metrics with their figures, as documented in ``docs/monitoring.md``."""


class FiguresCollector(Collector):
    """The metrics of a run, for a registry of an application's own.

    Parameters
    ----------
    figures : callable
        Returns the figures, as ``run.figures``; called in the thread that collects.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry
    >>> from trident import FixedBatchSpout, TridentTopology
    >>> topology = TridentTopology()
    >>> _ = topology.newStream("words", FixedBatchSpout("word", 1, ("cat",)))
    >>> registry = CollectorRegistry()
    >>> with topology.start() as run:
    ...     registry.register(FiguresCollector(run.figures))
    ...     run.processAllAvailable()
    ...     registry.get_sample_value("trident_tuples_total", {"group": "words"})
    1
    """

    def __init__(self, figures: Callable[[], Mapping[str, Any]]) -> None:
        self._figures = figures

    def describe(self) -> Iterable[core.Metric]:
        """Return nothing: which metrics there are depends on what runs."""
        return ()

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics; one without any value is left out."""
        figures = self._figures()
        started = datetime.fromisoformat(figures["since"]).timestamp()
        help = "When the run started, in seconds since 1970."
        yield _GAUGE("trident_start_time_seconds", help, value=started)
        groups = [(_labels(group), group) for group in figures["groups"]]
        for kind, name, figure, help in _GROUP:
            first, _, second = figure.partition(".")
            samples = [(at, group[first]) for at, group in groups]
            if second:
                samples = [(at, (parts or {}).get(second)) for at, parts in samples]
            yield from _family(kind, name, help, samples)
        for kind, name, label, figure, help in _PARTS:
            samples = [
                ({**at, label: _without_surrogates(part)}, value)
                for at, group in groups
                for part, value in _parts(figure, group).items()
            ]
            yield from _family(kind, name, help, samples)
        queries = [
            ({"function": _without_surrogates(each["function"])}, each)
            for each in figures["queries"]
        ]
        for kind, name, figure, help in _QUERY:
            yield from _family(kind, name, help, [(at, query[figure]) for at, query in queries])
        if queries:
            help = "How long callers waited."
            times = core.HistogramMetricFamily("trident_query_seconds", help, labels=["function"])
            for at, query in queries:
                buckets = [*query["within"].items(), ("+Inf", query["timed"])]
                times.add_metric([*at.values()], buckets, query["seconds"])
            yield times


def text(figures: Mapping[str, Any]) -> str:
    """Return figures, those of ``run.figures()``, as the text that Prometheus reads.

    Examples
    --------
    >>> figures = {"since": "1970-01-01T00:00:01.500+00:00", "groups": [], "queries": []}
    >>> print(text(figures), end="")
    # HELP trident_start_time_seconds When the run started, in seconds since 1970.
    # TYPE trident_start_time_seconds gauge
    trident_start_time_seconds 1.5
    """
    return generate_latest(FiguresCollector(lambda: figures)).decode()


def _family(
    kind: Any, name: str, help: str, samples: Iterable[tuple[Mapping[str, str], Any]]
) -> Iterator[core.Metric]:
    known = [(at, value) for at, value in samples if value is not None]
    if known:
        family = kind(f"trident_{name}", help, labels=[*known[0][0]])
        for at, value in known:
            family.add_metric([*at.values()], value)
        yield family


def _labels(group: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of a group, with its run if the server has several."""
    run = {"run": str(group["run"])} if "run" in group else {}
    return {**run, "group": _without_surrogates(group["group"])}


def _parts(figure: str, group: Mapping[str, Any]) -> Mapping[str, float]:
    if figure == "status":
        return {each: group["status"] == each for each in _STATUSES}
    parts: Mapping[str, float] = group[figure]
    return parts


def _without_surrogates(name: str) -> str:
    return name.encode(errors="replace").decode()
