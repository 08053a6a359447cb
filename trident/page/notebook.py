"""What notebooks show of topologies, runs, states and batches: HTML that needs no style or script.

Drawings are images, so that what a notebook keeps of HTML from elsewhere, and the style of its
other outputs, changes nothing of them.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from threading import Event, Thread
from typing import Any

from trident.batch.progress import show_progress_by
from trident.drawing.svg import to_svg
from trident.drawing.svg_parts import Note
from trident.page.content import (
    NONE,
    Row,
    batch_id,
    content_of,
    duration,
    note_ids,
    step_name,
    steps_of,
    whole,
)
from trident.page.document import STATE_COLUMNS, column_names, state_row
from trident.states.printable import printable

_logger = logging.getLogger("trident")
_EVERY = 1.0


def topology_html(plan: Mapping[str, Any]) -> str:
    """A topology: its drawing, and its states."""
    return f"{_image(to_svg(plan))}{_states(plan['states'])}"


def state_html(state: Mapping[str, Any]) -> str:
    """A state: its guarantee, its place, and its cost."""
    return _states([state])


def run_html(
    figures: Mapping[str, Any], plans: Sequence[Mapping[str, Any]], urls: Iterable[str] = ()
) -> str:
    """A run: its topology with figures, and what it has done.

    `plans` are what `to_dict` makes of its topology, `urls` where its page is served.
    """
    now = content_of(figures, plans)
    notes = {of: Note(now.texts[id]) for of, id in note_ids(plans).items()}
    links = ", ".join(f'<a href="{_text(url)}/">{_text(url)}</a>' for url in urls)
    parts = [f"<p><b>{_text(now.texts['status'])}</b>{f'; see {links}' if links else ''}</p>"]
    parts += [_image(to_svg(plan, notes)) for plan in plans]
    parts.append(_table(column_names("groups"), now.rows["groups"]))
    if figures["queries"]:
        parts.append(_table(column_names("queries"), now.rows["queries"]))
    if any(group["errors"] for group in figures["groups"]):
        parts.append(_table(column_names("errors"), now.rows["errors"][:3]))
    return "".join(parts)


def progress_html(progress: Mapping[str, Any]) -> str:
    """A finished batch."""
    seconds = progress["seconds"]
    rows: list[Row] = [
        ("group", progress["group"]),
        ("batch", batch_id(progress["txid"])),
        ("attempts", whole(progress["attempts"])),
        ("tuples", whole(progress["tuples"])),
        ("keys read", whole(progress["keys_read"])),
        ("keys written", whole(progress["keys_written"])),
        ("from caches", whole(progress["cache_hits"])),
        ("late tuples", whole(progress["late"])),
        ("engine", progress["engine"] or NONE),
        ("took", duration(sum(steps_of(seconds).values()))),
        *((step_name(step), duration(took)) for step, took in seconds.items()),
        *((f"bad in {step}", whole(count)) for step, count in progress["bad_tuples"].items()),
        *((f"counter {name}", whole(count)) for name, count in progress["counters"].items()),
    ]
    if progress["dead_letter"] is not None:
        rows.append(("set aside", progress["dead_letter"]))
    return _table((), rows)


def _states(states: Iterable[Mapping[str, Any]]) -> str:
    rows = list(map(state_row, states))
    return _table(STATE_COLUMNS, rows) if rows else ""


def _table(columns: Sequence[str], rows: Iterable[Row]) -> str:
    heads = "".join(f"<th>{_text(name)}</th>" for name in columns)
    head = f"<thead><tr>{heads}</tr></thead>" if columns else ""
    return f"<table>{head}<tbody>{''.join(map(_row, rows))}</tbody></table>"


def _row(row: Row) -> str:
    first, *others = map(str, row)
    left = 'style="text-align:left"'
    cells = "".join(f"<td {left}>{_text(cell)}</td>" for cell in others)
    return f"<tr><th {left}>{_text(first)}</th>{cells}</tr>"


def _image(svg: str) -> str:
    data = b64encode(svg.encode()).decode()
    how = 'style="max-width:100%" alt="drawing of the topology"'
    return f'<img {how} src="data:image/svg+xml;base64,{data}">'


def _text(text: str) -> str:
    return escape(printable(text))


show_progress_by(progress_html)


class LiveDisplay:
    """Shows HTML in a notebook, and replaces it when it changes.

    A thread does so, so that the notebook goes on. The thread ends with what is shown, or when the
    same is shown in another cell: only the later one is kept up to date.

    `ended` waits some seconds for the end of what is shown, and returns whether it has ended.
    """

    def __init__(self, html: Callable[[], str], ended: Callable[[float], bool]) -> None:
        self._html = html
        self._has_ended = ended
        self._replaced = Event()

    def show(self) -> None:
        """Show it in the cell that is run.

        In a terminal it raises NotImplementedError: IPython then shows the object's text.
        """
        from IPython import get_ipython
        from IPython.display import HTML, display

        if not hasattr(get_ipython(), "kernel"):
            raise NotImplementedError
        self._replaced.set()
        replaced = self._replaced = Event()
        first = self._html()
        place = display(HTML(first), display_id=True)

        def keep_up_to_date() -> None:
            before, ended = first, False
            try:
                while not ended and not replaced.is_set():
                    ended = self._has_ended(_EVERY)
                    now = self._html()
                    if now != before and not replaced.is_set():
                        place.update(HTML(now))
                        before = now
            except Exception:  # the notebook is closed, or refuses it: what it shows stays
                _logger.debug("a notebook is no longer kept up to date", exc_info=True)

        Thread(target=keep_up_to_date, name="trident-notebook", daemon=True).start()
