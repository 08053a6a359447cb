"""What a drawing shows, and that nothing of it lies over something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from tests.api.topologies import Everything, sentences, word_count
from tests.plan.declared import DECLARED
from tests.plan.test_random_plans import topologies
from trident import Count, FixedBatchSpout, MapGet
from trident.api.topology import TridentTopology
from trident.drawing.svg import to_svg
from trident.drawing.svg_parts import Note, lanes
from trident.storm import Debug

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text></svg><script>alert(1)</script>\"'&amp;\x00\u202e\ud800"


def cards(svg: str) -> list[tuple[float, float, float, float]]:
    """The boxes of stages, each with its left, top, right and bottom."""
    found = []
    for part in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if not (shift := part.get("transform")):
            continue
        dx, dy = map(float, shift.removeprefix("translate(").removesuffix(")").split())
        for box in part.iter(f"{SVG}rect"):
            if box.get("class") == "card":
                x, y, width, height = (float(box.attrib[n]) for n in ("x", "y", "width", "height"))
                found.append((x + dx, y + dy, x + dx + width, y + dy + height))
    return found


def texts(svg: str) -> str:
    found = ElementTree.fromstring(svg).itertext()
    return " ".join(" ".join(found).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.mark.parametrize("declare", DECLARED)
def test_every_step_state_and_query_is_drawn(declare: Callable[[], TridentTopology]) -> None:
    topology = declare()
    plan, shown = topology.to_dict(), texts(topology.to_svg())
    for node in plan["nodes"]:
        assert f"{node['id']} {node['text'][:12]}" in shown
    for state in plan["states"]:
        assert state["name"] in shown
        assert (state["guarantee"] or "static") in shown
    for query in plan["queries"]:
        assert f"query {query['function']}" in shown


@given(topologies())
@settings(max_examples=60)
def test_no_two_stages_lie_over_each_other(topology: TridentTopology) -> None:
    plan, svg = topology.to_dict(), topology.to_svg()
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    found = cards(svg)
    assert len(found) == sum(len(part["stages"]) for part in plan["groups"] + plan["queries"])
    for left, top, right, bottom in found:
        assert 0 < left < right < width
        assert 0 < top < bottom < height
    for one, other in combinations(found, 2):
        beside = one[2] < other[0] or other[2] < one[0]
        assert beside or one[3] < other[1] or other[3] < one[1]


def test_sixty_steps_are_drawn_as_one_is() -> None:
    topology = TridentTopology()
    assert "Topology without streams" in topology.to_svg()
    stream = sentences(topology)
    assert len(cards(topology.to_svg())) == 1
    merged = []
    for number in range(9):
        branch = stream.partitionBy("id" if number % 2 else "sentence")
        for _ in range(4):
            branch = branch.filter(Everything())
        merged.append(branch)
    counts = word_count(topology.merge(*merged))
    topology.newDRPCStream("words").stateQuery(counts, "args", MapGet(), "count")
    svg = topology.to_svg()
    assert len(topology.to_dict()["nodes"]) > 50
    assert len(cards(svg)) == 14
    assert len(svg) < 40_000


def test_names_are_shown_as_text_whatever_they_are() -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("<img/src=x> string", 1)
    id = HOSTILE.replace("/", "").replace("\x00", "")
    stream = topology.newStream(id, spout).each(Debug(HOSTILE))
    counts = stream.groupBy("<img/src=x>").persistentAggregate(
        "memory:one", Count(), "count", name=id.replace("\ud800", "")
    )
    topology.newDRPCStream(HOSTILE).stateQuery(counts, "args", MapGet(), "value")
    note = Note(HOSTILE, id='"><script>')
    svg = to_svg(topology.to_dict(), {("group", id): note, ("query", HOSTILE): note})
    root = ElementTree.fromstring(svg.encode())
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "style", "g", "rect", "path", "polygon", "text", "title"}
    assert not [name for element in root.iter() for name in element.attrib if name[:2] == "on"]
    assert "<script>alert(1)</script>" in texts(svg)


def test_a_drawing_fetches_nothing() -> None:
    svg = DECLARED[0]().to_svg()
    assert svg.count("http") == 1  # its namespace
    assert "url(" not in svg
    assert "@import" not in svg


def test_a_drawing_has_colours_for_the_dark() -> None:
    assert "@media(prefers-color-scheme:dark)" in DECLARED[0]().to_svg()


def test_arrows_that_pass_stages_run_apart_unless_one_ends_before_the_other() -> None:
    assert lanes([(0, 1), (1, 2)]) == {}
    assert lanes([(0, 2), (1, 3), (2, 4)]) == {(0, 2): 0, (1, 3): 1, (2, 4): 0}


@given(topologies())
@settings(max_examples=60)
def test_no_arrow_between_stages_runs_through_a_card(topology: TridentTopology) -> None:
    for part in ElementTree.fromstring(topology.to_svg()).iter(f"{SVG}g"):
        boxes = [box.attrib for box in part if box.get("class") == "card" and box.get("x")]
        for line in (each for each in part if each.get("class") == "flow"):
            found = [float(each) for each in re.findall(r"[\d.]+", line.attrib["d"])]
            for (x, y), (to_x, to_y) in pairwise(zip(found[::2], found[1::2], strict=True)):
                for box in boxes:
                    left, top, wide, high = (float(box[n]) for n in ("x", "y", "width", "height"))
                    beside = max(x, to_x) <= left or left + wide <= min(x, to_x)
                    assert beside or max(y, to_y) <= top or top + high <= min(y, to_y)
