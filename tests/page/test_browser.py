"""The page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.drpc.asking import until
from tests.page.browser import UP_TO_DATE, wait_for
from tests.page.made_up import ERROR, Told, figures, group, word_count
from trident import (
    Count,
    FilterNull,
    FixedBatchSpout,
    MapGet,
    MemoryMapState,
    Split,
    TridentTopology,
)
from trident.server.server import DRPCServer

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

Scheme = Literal["light", "dark"]
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


class Page:
    """A server of a topology that tells what it is told to."""

    def __init__(self, **options: Any) -> None:
        self.run = Told(word_count())
        self.server = DRPCServer(self.run, port=0, **options).start()

    def tell(self, **given: Any) -> None:
        self.run.told = figures(**given)

    def close(self) -> None:
        self.server.stop()
        self.run.drpc.close()


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.close()


def cell(table: str, row: int, column: int) -> str:
    return f"document.getElementById('{table}').rows[{row}].cells[{column}].textContent"


def test_figures_change_while_it_is_looked_at(page: Page, tab: Tab) -> None:
    complaints: list[str] = []
    tab.on("console", lambda told: complaints.append(told.text))
    tab.on("pageerror", lambda error: complaints.append(error.message))
    tab.goto(f"{page.server.url}/")
    wait_for(tab, UP_TO_DATE)
    assert tab.evaluate(cell("groups", 0, 2)) == "7"
    tab.evaluate("void (window.before = document.getElementById('queries').rows[0])")
    page.tell(txid=8, errors=[], failures={"FailedException": 3, "ConnectionError": 1})
    wait_for(tab, f"{cell('groups', 0, 2)} === '8'")
    assert tab.evaluate(cell("failures", 1, 1)) == "ConnectionError"
    assert tab.evaluate(cell("errors", 0, 0)) == "none"
    drawn = tab.evaluate("document.querySelector('svg #group-0').textContent")
    assert drawn == "running · batch 8 · 1,234 tuples/s"
    # What hasn't changed is left alone, so that it can be selected.
    assert tab.evaluate("document.getElementById('queries').rows[0] === window.before")
    assert complaints == []


@pytest.mark.parametrize("tab", [{"java_script_enabled": False}], indirect=True)
def test_it_is_read_without_a_script(page: Page, tab: Tab) -> None:
    tab.goto(f"{page.server.url}/")
    text = tab.inner_text("body")
    for shown in ("2,800", "exactly once", "FailedException", "not today", "every 5 seconds"):
        assert shown in text
    # A browser that runs scripts takes what is in a noscript for text, and doesn't load it again.
    assert tab.evaluate("document.querySelector('meta[http-equiv=refresh]').content") == "5"


def test_no_name_and_no_error_runs_a_script(tab: Tab) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 1)
    words = topology.newStream("<script>document.title='run'<script>", spout).groupBy("word")
    counts = words.persistentAggregate(MemoryMapState.Factory(), Count(), "n", name=HOSTILE)
    topology.newDRPCStream(HOSTILE).stateQuery(counts, "args", MapGet(), "n")
    error = {**ERROR, "message": HOSTILE, "frame": HOSTILE, "reason": HOSTILE}
    hostile = group(group=HOSTILE, failures={HOSTILE: 1}, engine=HOSTILE, errors=[error])
    run = Told(topology)
    run.told = {**figures(), "groups": [hostile]}
    with DRPCServer(run, port=0) as server:
        tab.goto(f"{server.url}/")
        wait_for(tab, UP_TO_DATE)
        run.told = {**figures(), "groups": [{**hostile, "txid": 99}]}
        wait_for(tab, f"{cell('groups', 0, 2)} === '99'")
        assert tab.evaluate("document.title") != "run"
        assert tab.evaluate("document.querySelectorAll('script, img').length") == 1
        assert tab.evaluate(cell("errors", 0, 5)) == HOSTILE
        # Nor does the browser take markup of its own script.
        put = "(() => { try { document.body.innerHTML = '<p>'; } catch (e) { return e.name; } })()"
        assert tab.evaluate(put) == "TypeError"
    run.drpc.close()


def test_a_reader_is_told_that_the_server_is_gone_and_comes_back(tab: Tab) -> None:
    page = Page()
    tab.goto(f"{page.server.url}/")
    wait_for(tab, UP_TO_DATE)
    port = page.server.port
    page.server.stop()
    wait_for(tab, "document.getElementById('live').textContent.startsWith('no connection')")
    page.tell(txid=9)
    page.server = DRPCServer(page.run, port=port).start()
    wait_for(tab, f"{cell('groups', 0, 2)} === '9'")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_told_from_its_ground(page: Page, tab: Tab, scheme: Scheme) -> None:
    tab.emulate_media(color_scheme=scheme)
    tab.goto(f"{page.server.url}/")
    assert tab.evaluate(CONTRASTS) == []


def test_a_narrow_screen_scrolls_tables_not_the_page(page: Page, tab: Tab) -> None:
    tab.set_viewport_size({"width": 360, "height": 640})
    tab.goto(f"{page.server.url}/")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def forty_steps() -> TridentTopology:
    """A topology whose drawing is wider than a phone."""
    topology = TridentTopology()
    words = topology.newStream("lines", FixedBatchSpout("line string", 1))
    for number in range(6):
        words = words.each("line", Split(), f"word{number}").filter(FilterNull())
        counted = words.groupBy(f"word{number}").persistentAggregate(
            "redis://cache:6379/0", Count(), "count", name=f"counts-of-word-{number}"
        )
        counted.newValuesStream().filter("count", FilterNull()).shuffle()
    return topology


@pytest.mark.parametrize("width", [390, 640])
def test_a_drawing_of_forty_steps_is_as_wide_as_there_is_room(tab: Tab, width: int) -> None:
    topology = forty_steps()
    assert len(topology.plan().nodes) >= 40
    run = Told(topology)
    tab.set_viewport_size({"width": width, "height": 800})
    with run.drpc, DRPCServer(run, port=0) as server:
        tab.goto(f"{server.url}/")
        sizes = tab.evaluate(WIDTHS)
        assert sizes["page"] <= width
        assert sizes["drawing"] <= sizes["room"] <= width
        assert sizes["own"] > width
        tab.evaluate("document.querySelector('input[type=checkbox]').click()")
        sizes = tab.evaluate(WIDTHS)
        assert sizes["drawing"] == pytest.approx(sizes["own"], abs=1)
        assert sizes["page"] <= width  # its frame is scrolled


WIDTHS = """(() => {
  const drawing = document.querySelector("svg"), at = drawing.getBoundingClientRect();
  return {
    page: document.documentElement.scrollWidth,
    room: drawing.parentElement.clientWidth,
    drawing: at.width,
    own: drawing.viewBox.baseVal.width,
  };
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_group_that_fails_while_it_is_looked_at_turns_red(
    page: Page, tab: Tab, scheme: Scheme
) -> None:
    tab.emulate_media(color_scheme=scheme)
    tab.goto(f"{page.server.url}/")
    wait_for(tab, UP_TO_DATE)
    colours = """(() => {
      const red = getComputedStyle(document.documentElement).getPropertyValue("--failed");
      const box = document.createElement("i");
      box.style.color = red;
      document.body.append(box);
      const found = [getComputedStyle(box).color];
      box.remove();
      const of = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
      return [...found, of("#status", "color"), of("svg #group-0", "fill"),
        of("svg .frame", "stroke"), of("#groups tr td:nth-child(2)", "color")];
    })()"""
    red, *before = tab.evaluate(colours)
    assert red not in before
    page.run.told = {**figures(status="failed", errors=[ERROR]), "status": "failed"}
    wait_for(tab, f"{cell('groups', 0, 1)} === 'failed: FailedException: not today'")
    assert tab.evaluate(colours) == [red] * 5
    assert tab.evaluate(CONTRASTS) == []
    page.run.told = figures()
    wait_for(tab, f"{cell('groups', 0, 1)} === 'running'")
    assert red not in tab.evaluate(colours)[1:]


def test_its_links_lead_to_what_the_server_tells_elsewhere(tab: Tab) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("upper").map(str.upper, "text")
    with DRPCServer(topology, port=0) as server:
        tab.goto(f"{server.url}/")
        links = tab.evaluate("[...document.querySelectorAll('nav a')].map((each) => each.href)")
        assert [link.removeprefix(server.url) for link in links] == [
            *("/metrics", "/healthz", "/api/v1/state")
        ]
        for link in links:
            assert tab.evaluate(f"fetch({link!r}).then((found) => found.status)") == 200


def test_a_page_that_is_left_costs_nothing_more(page: Page, tab: Tab) -> None:
    tab.goto(f"{page.server.url}/")
    wait_for(tab, UP_TO_DATE)
    watched = page.server.connections._open
    assert [each for each in watched if each._running]
    tab.goto("about:blank")
    until(lambda: not [each for each in list(watched) if each._running])


# The texts whose contrast is below 4.5, by the colours that the browser has worked out
CONTRASTS = """(() => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => {
    const [r, g, b] = color.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const card = element.closest("svg");
    if (card) {
      const style = getComputedStyle(card);
      const name = element.matches(".title, .note, .way") ? "--frame" : "--card";
      return rgba(style.getPropertyValue(name));
    }
    for (let each = element; each; each = each.parentElement) {
      const found = rgba(getComputedStyle(each).backgroundColor);
      if (found[3] === 255) return found;
    }
    return rgba(getComputedStyle(document.body).backgroundColor);
  };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!element.textContent.trim() || element.childElementCount) continue;
    if (element.matches("script, noscript, title, style")) continue;
    const style = getComputedStyle(element);
    const ink = rgba(element.closest("svg") ? style.fill : style.color);
    const [dark, bright] = [light(ink), light(ground(element))].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    if (contrast < 4.5) bad.push([element.textContent, contrast]);
  }
  return bad;
})()"""
