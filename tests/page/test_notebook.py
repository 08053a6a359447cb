"""What notebooks show."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from collections.abc import Callable
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.drpc.asking import until
from tests.page.made_up import figures, word_count
from trident import Count, FixedBatchSpout, TridentTopology
from trident.api.stream import TridentState
from trident.page.notebook import LiveDisplay, run_html


def counted() -> tuple[TridentTopology, Any]:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ["cat"], ["dog"]))
    return topology, words.groupBy("word").persistentAggregate("memory:", Count(), "<i>count</i>")


def drawing(html: str) -> str:
    """The texts of the image in some HTML."""
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert found is not None
    return " ".join(ElementTree.fromstring(b64decode(found[1])).itertext())


def test_a_topology_shows_its_drawing_and_its_states() -> None:
    topology, _ = counted()
    bundle = topology._repr_mimebundle_()
    assert bundle["text/plain"] == topology.explain()
    assert "group words" in drawing(bundle["text/html"])
    assert "exactly once" in bundle["text/html"]
    assert "<i>" not in bundle["text/html"]


def test_a_state_shows_its_guarantee_its_place_and_its_calls() -> None:
    topology = word_count()
    (node,) = topology.plan().states
    html = TridentState(topology._builder, node)._repr_html_()
    for text in (
        "exactly once",
        "redis at cache:6379, database 0, prefix words",
        "3 for each task",
    ):
        assert text in html
    assert "s3cret" not in html


def test_a_batch_shows_how_long_its_steps_took() -> None:
    topology, _ = counted()
    with topology.start(trigger="available") as run:
        run.awaitTermination()
        progress = run.lastProgress
        assert progress is not None
        bundle = progress._repr_mimebundle_()
    assert '<th style="text-align:left">commit</th>' in bundle["text/html"]
    assert bundle["text/plain"] == repr(progress)


def test_a_run_shows_its_drawing_and_where_its_page_is() -> None:
    topology, _ = counted()
    with topology.start() as run:
        server = run.serve(port=0)
        html = run._repr_mimebundle_()["text/html"]
        assert f'<a href="{server.url}/">' in html
        assert "group words" in drawing(html)


def test_the_figures_of_a_run_are_in_its_drawing_and_its_tables() -> None:
    html = run_html(figures(), [word_count().to_dict()])
    assert "running · batch 7 · 1,234 tuples/s" in drawing(html)
    assert "1,200 tuples (2 partitions)" in html
    assert "not today" in html


class Notebook:
    """Stands for IPython: it keeps what is displayed, and what that is replaced by."""

    def __init__(self, **of_shell: Any) -> None:
        self.places: list[list[str]] = []
        self.shell = SimpleNamespace(**of_shell)

    def modules(self) -> dict[str, ModuleType]:
        ipython: Any = ModuleType("IPython")
        ipython.get_ipython = lambda: self.shell
        ipython.display = ModuleType("IPython.display")
        ipython.display.HTML = str
        ipython.display.display = self.display
        return {"IPython": ipython, "IPython.display": ipython.display}

    def display(self, shown: str, display_id: bool) -> Any:
        place = [shown]
        self.places.append(place)
        return SimpleNamespace(update=place.append)


@pytest.fixture
def in_notebook(monkeypatch: pytest.MonkeyPatch) -> Callable[[Notebook], Notebook]:
    def begin(notebook: Notebook) -> Notebook:
        for name, module in notebook.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        return notebook

    return begin


class Counting:
    """Shows another text each time, and ends when it is told."""

    def __init__(self) -> None:
        self.shown = 0
        self.end = Event()

    def html(self) -> str:
        self.shown += 1
        return str(self.shown)

    def ended(self, seconds: float) -> bool:
        return self.end.wait(0.001)


def test_a_running_one_is_updated_until_it_ends(
    in_notebook: Callable[[Notebook], Notebook],
) -> None:
    notebook, counting = in_notebook(Notebook(kernel=object())), Counting()
    LiveDisplay(counting.html, counting.ended).show()
    (place,) = notebook.places
    until(lambda: len(place) > 3)
    counting.end.set()
    until(lambda: place[-1] == str(counting.shown))
    assert place == sorted(place, key=int)


def test_only_the_last_cell_is_kept_up_to_date(
    in_notebook: Callable[[Notebook], Notebook],
) -> None:
    notebook, counting = in_notebook(Notebook(kernel=object())), Counting()
    display = LiveDisplay(counting.html, counting.ended)
    display.show()
    display.show()
    first, second = notebook.places
    until(lambda: len(second) > 3)
    stands = len(first)
    until(lambda: len(second) > 20)
    counting.end.set()
    assert len(first) <= stands + 1  # it may have been on its way


def test_a_terminal_shows_a_run_as_any_object(
    in_notebook: Callable[[Notebook], Notebook],
) -> None:
    in_notebook(Notebook())
    topology, _ = counted()
    with topology.start() as run, pytest.raises(NotImplementedError):
        run._ipython_display_()
