"""``/metrics`` and ``/healthz`` of what is served."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as URLRequest
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.figures import stores
from tests.figures.topologies import counted, fed, words
from tests.server.asking_app import answer_of
from trident import FeederBatchSpout, TridentTopology
from trident.errors import OperationError
from trident.figures.prometheus import text
from trident.figures.reasons import REASONS
from trident.server import DRPCApp, DRPCServer, health
from trident.spouts.feeder import FeedError
from trident.states import OpaqueMap

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(page: str) -> Samples:
    """The values of a page by name and labels, as Prometheus reads it."""
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def got(url: str, token: str | None = None) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urlopen(URLRequest(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def group(**changed: Any) -> dict[str, Any]:
    """Made-up figures of a group."""
    sums = "batches tuples attempts keys_read keys_written cache_hits late dead_letters".split()
    told = {name: 10 * number for number, name in enumerate(sums)}
    return {
        **told,
        "group": "words",
        "status": "running",
        "txid": None,
        "tuples_per_second": 0.5,
        "seconds": {"run": 0.25},
        "bad_tuples": {"each(n, Odd())": 2},
        "failures": {},
        "lag": None,
        **changed,
    }


SINCE = "2026-01-01T00:00:00.000+00:00"


def test_a_run_tells_its_figures_as_prometheus_reads_them() -> None:
    spout = fed()
    with counted(spout).start() as run:
        server = run.serve(port=0)
        spout.feed([["cat"], ["the"], ["cat"]])
        run.processAllAvailable()
        for _ in range(3):
            run.drpc.execute("count", "cat")
        status, page = got(f"{server.url}/metrics")
    found, at = samples(page), (("group", "words"),)
    assert status == 200
    assert found["trident_batches_total", at] == 1
    assert found["trident_tuples_total", at] == 3
    assert found["trident_txid", at] == 1
    assert found["trident_lag_tuples", at] == 0
    assert found["trident_step_seconds_total", (*at, ("step", "run"))] > 0
    assert found["trident_group_status", (*at, ("status", "running"))] == 1
    assert found["trident_group_status", (*at, ("status", "failed"))] == 0
    of = (("function", "count"),)
    assert found["trident_queries_total", of] == 3
    assert found["trident_query_seconds_count", of] == 3
    assert found["trident_query_seconds_bucket", (*of, ("le", "+Inf"))] == 3
    assert found["trident_start_time_seconds", ()] > 0


def test_every_family_has_its_type_and_every_name_is_documented() -> None:
    queries = [{"function": "f", "calls": 1, "failed": 0, "waiting": 0, "seconds": 0.5}]
    queries[0] |= {"within": {"0.1": 0, "1": 1}, "timed": 1}
    figures = {
        "since": SINCE,
        "groups": [group(txid=3, lag={"tuples": 4, "detail": ""}, failures={"failed": 2})],
        "queries": queries,
    }
    families = [*text_string_to_metric_families(text(figures))]
    documented = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()
    assert len(families) == 20
    for family in families:
        assert family.documentation
        assert family.type in ("gauge", "counter", "histogram")
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in documented
    for reason in REASONS:
        assert f"`{reason}`" in documented


def test_label_values_are_escaped() -> None:
    name = 'a "word"\\ of\ntwo lines \ud800'
    page = text({"since": SINCE, "groups": [group(group=name)], "queries": []})
    shown = 'a "word"\\ of\ntwo lines ?'
    assert samples(page)["trident_batches_total", (("group", shown),)] == 0
    page.encode()


def test_what_nobody_knows_is_left_out() -> None:
    page = text({"since": SINCE, "groups": [group()], "queries": []})
    assert "trident_lag_tuples" not in page
    assert "trident_txid" not in page
    assert "trident_quer" not in page


def test_groups_of_several_runs_are_told_apart() -> None:
    runs = [counted(words()).start(), counted(words()).start()]
    with runs[0], runs[1], DRPCServer(runs, port=0) as server:
        found = samples(got(f"{server.url}/metrics")[1])
    assert found["trident_batches_total", (("group", "words"), ("run", "1"))] == 0
    assert found["trident_batches_total", (("group", "words"), ("run", "2"))] == 0


def test_what_runs_elsewhere_has_queries_only(tmp_path: Path) -> None:
    with counted(words(), f"sqlite:{tmp_path / 'counts.db'}").serve(port=0) as server:
        found = samples(got(f"{server.url}/metrics")[1])
        status, told = got(f"{server.url}/healthz")
    assert found["trident_queries_total", (("function", "count"),)] == 0
    assert not any(name.startswith("trident_batches") for name, _ in found)
    state = {"state": "words-count", "store": str(tmp_path / "counts.db"), "error": None}
    assert status == 200
    assert json.loads(told) | {"states": []} == {"status": "ok", "groups": [], "states": []}
    assert json.loads(told)["states"][0] | {"state": "words-count"} == state


def test_a_mounted_application_tells_the_same() -> None:
    with counted(words("a b")).start() as run:
        run.processAllAvailable()
        app = DRPCApp(run)
        status, page, _ = asyncio.run(answer_of(app, "GET", "/metrics"))
        assert status == 200
        assert samples(page.decode())["trident_tuples_total", (("group", "words"),)] == 2
        assert asyncio.run(answer_of(app, "GET", "/healthz")).status == 200
        app.close()


def test_a_group_that_has_failed_is_unhealthy() -> None:
    spout = FeederBatchSpout("word")
    topology = TridentTopology()
    topology.newStream("words", spout).map(lambda word: 1 / 0, "n").peek(print)
    topology.newDRPCStream("f").map(str.upper, "text")
    run = topology.start()
    server = run.serve(port=0)
    assert got(f"{server.url}/healthz")[0] == 200
    with pytest.raises(FeedError):
        spout.feed([["cat"]])
    with pytest.raises(OperationError):
        run.awaitTermination()
    status, told = got(f"{server.url}/healthz")
    run.stop()
    assert status == 503
    groups = [{"group": "words", "status": "failed"}]
    assert json.loads(told) == {"status": "failing", "groups": groups, "states": []}


@pytest.fixture
def hung() -> Iterator[None]:
    """A store that doesn't answer."""
    stores.let_go.clear()
    yield
    stores.let_go.set()


@pytest.mark.usefixtures("hung")
def test_a_store_that_hangs_is_told_in_time_and_asked_by_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "LIMIT", 0.05)
    topology = counted(words(), OpaqueMap.factory(stores.open_store))
    app = DRPCApp(topology)
    before = threading.active_count()

    async def several() -> list[Any]:
        asking = [answer_of(app, "GET", "/healthz") for _ in range(50)]
        return await asyncio.gather(*asking)

    for _ in range(3):
        for status, body, _ in asyncio.run(several()):
            [state] = json.loads(body)["states"]
            assert (status, state["error"]) == (503, "no answer within 0.05 s")
    assert threading.active_count() == before + 1
    stores.let_go.set()
    while asyncio.run(answer_of(app, "GET", "/healthz")).status != 200:
        pass
    app.close()


def test_a_store_is_asked_once_however_many_want_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH", 60.0)
    app = DRPCApp(counted(words(), OpaqueMap.factory(stores.open_store)))
    while stores.asked.acquire(blocking=False):
        pass
    for _ in range(20):
        assert asyncio.run(answer_of(app, "GET", "/healthz")).status == 200
    assert stores.asked.acquire(blocking=False)
    assert not stores.asked.acquire(blocking=False)
    app.close()


def test_with_tokens_only_those_who_may_see_metrics_see_more_than_the_status() -> None:
    access: dict[str, Any] = {
        "tokens": {"ann": "s3cret", "bob": "other"},
        "allow": {"metrics": ["ann"], "count": ["bob"]},
    }
    with counted(words()).start() as run:
        server = run.serve(port=0, **access)
        answers = {
            token: [got(f"{server.url}/{path}", token) for path in ("metrics", "healthz")]
            for token in (None, "other", "s3cret")
        }
    assert [answers[token][0][0] for token in answers] == [401, 403, 200]
    for token in (None, "other"):
        assert answers[token][1] == (200, '{"status":"ok"}')
    assert json.loads(answers["s3cret"][1][1])["groups"] == [
        {"group": "words", "status": "running"}
    ]
