"""The page: one document, with everything in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import chain
from typing import Any

from trident.drawing.svg import unstyled_svg
from trident.drawing.svg_parts import Note
from trident.drawing.svg_shapes import STYLE as DRAWING_STYLE
from trident.page.content import Cell, Content, Row, is_failed_row, note_ids
from trident.page.look import SCRIPT, STYLE
from trident.plan.places import Place
from trident.states.printable import printable
from trident.states.store import RoundTrips

_STYLES = DRAWING_STYLE + STYLE
_TABLES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "groups": (
        "Groups",
        "What each has done since it started",
        ("Group", "Status", "#Batch", "#Tuples", "#Tuples/s", "#Attempts", "#Failed", "Behind"),
    ),
    "steps": (
        "Time by step",
        "Where the time of batches goes",
        ("Group", "Step", "#A batch", "#Share", ""),
    ),
    "failures": ("Retries", "Attempts that failed, by reason", ("Group", "Reason", "#Attempts")),
    "errors": (
        "Last errors",
        "The newest first, with the line of your code where there is one",
        ("When", "Group", "#Batch", "#Attempt", "Reason", "Message", "Where"),
    ),
    "queries": (
        "Queries",
        "Calls since the start, and how long the last ones took",
        ("Function", "#Calls", "#Failed", "#Waiting", "#Half within", "#99 % within"),
    ),
    "recent": (
        "Last batches",
        "The newest first",
        ("Group", "#Batch", "#Tuples", "#Attempts", "#Took", "Slowest step"),
    ),
    "more": (
        "Work",
        "What states and sources did since the start",
        (
            *("Group", "Engine", "#Batches", "#Keys read", "#Keys written", "#From caches"),
            *("#Late tuples", "#Bad tuples", "#Set aside"),
        ),
    ),
}
"""Title, caption and columns of each table; a column whose name begins with # has numbers."""

STATE_COLUMNS = ("State", "Guarantee", "Why", "Kept in", "Calls a batch")
_FAILED = ' class="failed"'
_LINKS = (
    '<nav><a href="metrics">metrics</a> <a href="healthz">health</a> '
    '<a href="api/v1/state">states</a></nav>'
)
"""The other pages of the server with figures."""


def policy() -> str:
    """Return the page's Content-Security-Policy: it runs only what is in it, and asks only its
    server."""
    parts = {
        "default-src": "'none'",
        "script-src": _hashed(SCRIPT),
        "style-src": _hashed(_STYLES),
        "img-src": "data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def column_names(table: str) -> list[str]:
    """Return the columns of a table without the mark of numbers."""
    return [name.removeprefix("#") for name in _TABLES[table][2]]


def document(plans: Sequence[Mapping[str, Any]], explained: Sequence[str], now: Content) -> str:
    return "\n".join(_document(plans, explained, now))


def _document(
    plans: Sequence[Mapping[str, Any]], explained: Sequence[str], now: Content
) -> Iterator[str]:
    notes = {
        of: Note(now.texts[id], id, failed=id in now.failed) for of, id in note_ids(plans).items()
    }
    names = ", ".join(_names(plans)) or "Topology"
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        '<noscript><meta http-equiv="refresh" content="5"></noscript>'
        f"<title>{_text(names)}</title><style>{_STYLES}</style></head>"
    )
    yield f'<body data-status="{_text(now.status)}"><header>{_LINKS}<h1>{_text(names)}</h1>'
    yield f'<p><span id="status" role="status">{_text(now.texts["status"])}</span> '
    yield '<span id="live"><noscript>refreshed every 5 seconds</noscript></span></p></header><main>'
    if now.status == "elsewhere":
        yield from _table("queries", now)
        yield from _drawings(plans, notes)
        yield from _states(plans)
    else:
        yield from _table("groups", now)
        others = chain(_table("failures", now), _table("queries", now))
        yield from _beside(_table("steps", now), others)
        yield from _table("errors", now)
        yield from _drawings(plans, notes)
        yield from _states(plans)
        yield from _table("recent", now)
        yield from _table("more", now)
    for text in explained:
        yield f"<h2>Plan</h2><details><summary>As text</summary><pre>{_text(text)}</pre></details>"
    yield f"</main><script>{SCRIPT}</script></body></html>"


def _drawings(
    plans: Sequence[Mapping[str, Any]], notes: Mapping[tuple[str, str], Note]
) -> Iterator[str]:
    """The topologies, each as wide as the page, or in its full size if the reader asks for that."""
    for plan in plans:
        yield '<section><h2>Topology</h2><label><input type="checkbox"> in full size</label>'
        yield '<div class="scroll" tabindex="0" role="region" aria-label="Drawing">'
        yield unstyled_svg(plan, notes)
        yield "</div></section>"


def _names(plans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for plan in plans:
        yield from (group["id"] for group in plan["groups"])
        if not plan["groups"]:
            yield from (query["function"] for query in plan["queries"])


def _beside(*columns: Iterable[str]) -> Iterator[str]:
    """Tables in columns, where there is room."""
    yield '<div class="beside">'
    for column in columns:
        yield "<div>"
        yield from column
        yield "</div>"
    yield "</div>"


def _table(id: str, now: Content) -> Iterator[str]:
    columns = _TABLES[id][2]
    failed = (_FAILED if id == "groups" and is_failed_row(row) else "" for row in now.rows[id])
    rows = (_row(row, columns, kind) for row, kind in zip(now.rows[id], failed, strict=True))
    return _framed(id, *_TABLES[id], rows)


def _framed(
    id: str, title: str, caption: str, columns: Sequence[str], rows: Iterable[str]
) -> Iterator[str]:
    """A table with its title, which scrolls where it is too wide."""
    heads = "".join(
        f'<th scope="col"{_numeric(name)}>{_text(name.removeprefix("#"))}</th>' for name in columns
    )
    yield f'<section aria-labelledby="of-{id}"><h2 id="of-{id}">{_text(title)}</h2>'
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(title)}">'
    yield f"<table><caption>{_text(caption)}</caption><thead><tr>{heads}</tr></thead>"
    yield f'<tbody id="{id}">'
    yield from rows
    yield "</tbody></table></div></section>"


def _row(row: Row, columns: Sequence[str], kind: str) -> str:
    if len(row) == 1:
        return f'<tr><td colspan="{len(columns)}">{_cell(row[0])}</td></tr>'
    first, *others = row
    cells = "".join(
        f"<td{_numeric(name)}>{_cell(cell)}</td>"
        for cell, name in zip(others, columns[1:], strict=True)
    )
    return f'<tr{kind}><th scope="row"{_numeric(columns[0])}>{_cell(first)}</th>{cells}</tr>'


def _cell(cell: Cell) -> str:
    return _text(cell) if isinstance(cell, str) else f'<meter value="{cell:.3f}"></meter>'


def _numeric(column: str) -> str:
    return ' class="n"' if column.startswith("#") else ""


def _states(plans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The table of states, which don't change."""
    rows = [_state(state) for plan in plans for state in plan["states"]]
    caption = "What is guaranteed of each, and why"
    return _framed("states", "States", caption, STATE_COLUMNS, rows) if rows else iter(())


def _state(state: Mapping[str, Any]) -> str:
    name, level, *others = map(_text, state_row(state))
    sure = "" if state["guarantee"] is None else "sure" if level == "exactly once" else "unsure"
    cells = "".join(f"<td>{each}</td>" for each in others)
    return f'<tr><th scope="row">{name}</th><td class="{sure}">{level}</td>{cells}</tr>'


def state_row(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a state, as `to_dict` describes it."""
    calls = state["calls"]
    return (
        state["name"],
        state["guarantee"] or "static: only read",
        ". ".join(text for text in (state["why"], state["advice"]) if text),
        str(Place(**state["store"]) if state["store"] else state["label"]),
        str(RoundTrips(tuple(calls["task"]), tuple(calls["batch"]))) if calls else "not known",
    )


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """A text as HTML, with what HTML can't hold replaced."""
    return escape(printable(text))
