"""The page as it is sent: what it shows without a script, to whom, and what it may load."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.requests import Request

from tests.api.topologies import Everything, sentences
from tests.page.made_up import ERROR, figures, group, word_count
from tests.server.asking_app import Answer, answer_of
from trident import Count, TridentTopology
from trident.page.document import document
from trident.server.access import Access
from trident.server.application import token_of
from trident.server.routes import page as routes
from trident.server.routes.page import page_routes

HOSTILE = "</td></script><script>alert(1)</script>\"' onload=x"


class Served:
    """The routes of a page, and what they answer."""

    def __init__(self, told: dict[str, Any], *topologies: TridentTopology, **access: Any) -> None:
        self.told = told
        checked = Access(**access)
        drawn = [topology.to_dict() for topology in topologies]
        explained = [topology.explain() for topology in topologies]
        self.routes, self.feed = page_routes(checked, drawn, explained, lambda: self.told)

    def answer(self, path: str = "/", **headers: str) -> Answer:
        return asyncio.run(answer_of(self.routes, "GET", path, headers=headers))

    def text(self, path: str = "/") -> str:
        response = self.answer(path)
        assert response.status == 200
        return response.body.decode()


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(figures(), word_count())
    yield served
    served.feed.close()


class Elements(HTMLParser):
    """The tags of a document, their attributes, and the cells of its tables."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag in ("td", "th"):
            self.cells.append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data


def test_without_a_script_it_is_tables(served: Served) -> None:
    page = served.text()
    cells = Elements(page).cells
    for text in (
        *("running", "7", "2,800", "1,234", "1,200 tuples (2 partitions)"),
        *("commit", "74%", "run: compute", "37%", "FailedException", "not today", ERROR["frame"]),
        *("exactly once", "opaque stream, opaque map", "3 for each task and 6 for the batch"),
        *("redis at cache:6379, database 0, prefix words", "1.20 ms"),
    ):
        assert text in cells, text
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "s3cret" not in page


FAILED = {**ERROR, "reason": "OSError", "message": "no space\nleft on the disk"}


def test_a_group_that_has_failed_is_marked_in_headline_drawing_and_table_with_its_error() -> None:
    told = {**figures(status="failed", errors=[ERROR, FAILED]), "status": "failed"}
    told["groups"].append(group(group="others"))
    served = Served(told, word_count())
    page = served.text()
    served.feed.close()
    assert ". lines: OSError: no space left on the disk</span>" in page
    drawing = re.search(r"<svg.*</svg>", page, re.DOTALL)
    assert drawing is not None
    [note] = re.findall('<text class="note failed"[^>]*>(.*?)</text>', drawing[0])
    assert note == "failed · OSError: no space left on the disk"
    [row] = re.findall('<tr class="failed">.*?</tr>', page)
    assert "<td>failed: OSError: no space left on the disk</td>" in row


def test_no_group_is_marked_while_all_go_on(served: Served) -> None:
    assert 'class="failed"' not in served.text()
    assert 'class="note failed"' not in served.text()


def test_figures_come_before_the_drawing(served: Served) -> None:
    page = served.text()
    shown = re.findall("<h2[^>]*>([^<]*)</h2>", page)
    assert shown.index("Groups") < shown.index("Last errors") < shown.index("Topology")


def test_parts_of_a_step_follow_it(served: Served) -> None:
    cells = Elements(served.text()).cells
    assert cells.index("run: compute") < cells.index("commit")


def test_of_a_topology_that_runs_elsewhere_no_empty_tables_are_shown() -> None:
    told = {**figures(), "status": "elsewhere", "groups": []}
    served = Served(told, word_count())
    page = served.text()
    served.feed.close()
    shown = re.findall("<h2[^>]*>([^<]*)</h2>", page)
    assert shown == ["Queries", "Topology", "States", "Plan"]
    assert "runs elsewhere" in page


def test_what_would_be_exact_is_a_sentence_of_its_own() -> None:
    topology = TridentTopology()
    counted = sentences(topology).groupBy("id")
    counted.persistentAggregate("memory:x?kind=nontransactional", Count(), "n")
    served = Served(figures(), topology)
    page = served.text()
    served.feed.close()
    assert "is counted again. Exact would be" in page


def test_its_drawing_has_the_figures_of_groups_and_queries(served: Served) -> None:
    drawing = re.search(r"<svg.*</svg>", served.text(), re.DOTALL)
    assert drawing is not None
    assert "running · batch 7 · 1,234 tuples/s" in drawing[0]
    assert "12 calls · half within 1.20 ms" in drawing[0]


def test_it_loads_nothing_and_only_its_own_script_runs(served: Served) -> None:
    response = served.answer()
    policy = response.header("Content-Security-Policy")
    assert policy is not None
    page = served.text()
    for name in ("script", "style"):
        (inside,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in page
    links = re.findall("<a[^>]*>", page)
    assert not re.findall(r"""(?:src|href)=["'](?!data:,)""", re.sub("<a[^>]*>", "", page))
    assert [re.findall('href="([^"]*)"', link) for link in links] == [
        ["metrics"],
        ["healthz"],
        ["api/v1/state"],
    ]


def test_names_and_errors_are_shown_as_text_whatever_they_are() -> None:
    topology = TridentTopology()
    stream = sentences(topology).filter(Everything())
    stream.groupBy("id").persistentAggregate("memory:x", Count(), "n", name=HOSTILE)
    topology.newDRPCStream(HOSTILE).map(str.upper, "text")
    error = {**ERROR, "message": HOSTILE + "\ud800", "frame": HOSTILE, "reason": HOSTILE}
    told = figures(group=HOSTILE, errors=[error], failures={HOSTILE: 1}, seconds={HOSTILE: 1.0})
    served = Served(told, topology)
    found = Elements(served.text())
    served.feed.close()
    assert found.tags.count("script") == 1
    assert [name for name in found.attributes if name.startswith("on")] == []
    assert HOSTILE in found.cells


def test_a_page_of_sixty_steps_is_small() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    for number in range(58):
        stream = stream.partitionBy("id") if number % 6 == 0 else stream.filter(Everything())
    told = figures(errors=[{**ERROR, "message": "a" * 10_000}] * 20)
    told["groups"] = [group(group="sentences"), *told["groups"]]
    served = Served(told, topology)
    assert len(served.text().encode()) <= 50_000
    served.feed.close()


def test_a_page_is_made_once_a_look_however_many_ask(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def counted(*arguments: Any) -> str:
        made.append(arguments)
        return document(*arguments)

    monkeypatch.setattr(routes, "document", counted)
    monkeypatch.setattr(served.feed._look, "_fresh", 3600.0)
    assert len({served.text() for _ in range(5)}) == len(made) == 1
    monkeypatch.setattr(served.feed._look, "_fresh", 0.0)
    served.text()
    assert len(made) == 2


def test_programs_read_the_figures_and_the_plan_as_json(served: Served) -> None:
    assert json.loads(served.text("/figures.json")) == figures()
    assert json.loads(served.text("/plan.json")) == [word_count().to_dict()]


def test_no_path_but_its_own_is_the_page(served: Served) -> None:
    assert served.answer("/other").status == 404
    assert served.answer("/other/").status == 404


def test_it_is_shown_to_those_who_may_see_it() -> None:
    tokens = {"ann": "s3cret", "bob": "other"}
    served = Served(figures(), word_count(), tokens=tokens, allow={"page": ["ann"]})
    password = b64encode(b"anybody:s3cret").decode()
    for path in ("/", "/events", "/figures.json", "/plan.json"):
        refused = served.answer(path)
        assert refused.status == 401
        asks = [value for name, value in refused.headers if name == "www-authenticate"]
        assert any(value.startswith("Basic") for value in asks)
        assert served.answer(path, authorization="Bearer other").status == 403
        assert served.answer(path, authorization="Basic s3cret").status == 401
        assert served.answer(path, authorization="Bearer s3cret").status == 200
        assert served.answer(path, authorization=f"Basic {password}").status == 200
    served.feed.close()


def test_a_password_of_the_page_is_none_for_queries() -> None:
    """A browser sends it along with whatever another site has it ask."""
    password = b64encode(b"anybody:s3cret").decode()
    headers = [(b"authorization", f"Basic {password}".encode())]
    assert token_of(Request({"type": "http", "headers": headers})) is None


def test_more_watchers_than_may_be_are_refused(served: Served) -> None:
    served.feed._most = 0
    refused = served.answer("/events")
    assert refused.status == 503
    assert refused.header("Retry-After") == "10"


def test_several_topologies_are_shown_on_one_page() -> None:
    other = TridentTopology()
    other.newDRPCStream("upper").map(str.upper, "text")
    served = Served(figures(), word_count(), other)
    page = served.text()
    assert page.count("<svg") == 2
    assert "query upper" in page
    served.feed.close()
