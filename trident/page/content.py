"""All that changes on a page: texts by the id of their element, and the rows of tables.

The server writes them into the page that it sends, and into events. The browser puts those of an
event in the place of the others, as text. So one place says how figures look, and nothing that
comes with them can be taken for markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.printable import printable

Cell = str | float
"""A text, or a share from 0 to 1, which is drawn."""
Row = tuple[Cell, ...]
"""A row of one cell is as wide as its table."""
_RECENT, _ERRORS = 10, 10
_LONGEST_ERROR = 200
_LONGEST_NOTE = 48
"""Characters of a line in a drawing, which has room for no more."""
_EMPTY: list[Row] = [("none",)]

NONE = "-"
"""The text of an unknown figure."""
_LONGEST = 500
_PARTS_OF_RUN = ("compute", "write", "spark")
"""The parts of the step ``run`` that engines report."""


@dataclass(frozen=True)
class Content:
    """What a page shows at one moment.

    `texts` are by the id of their element, `rows` by the id of the body of their table. `failed`
    has the ids of the lines in drawings of groups that have failed.
    """

    figures: Mapping[str, Any]
    status: str
    texts: Mapping[str, str]
    rows: Mapping[str, Sequence[Row]]
    failed: Sequence[str] = ()

    def since(self, before: Content | None) -> dict[str, Any]:
        """Return what has changed, as JSON values; empty if nothing has."""
        if before is None:
            return {
                **{"status": self.status, "failed": self.failed},
                **{"texts": self.texts, "rows": self.rows},
            }
        changed: dict[str, Any] = {}
        if (self.status, self.failed) != (before.status, before.failed):
            changed |= {"status": self.status, "failed": self.failed}
        for name in ("texts", "rows"):
            now, then = getattr(self, name), getattr(before, name)
            if found := {id: value for id, value in now.items() if then.get(id) != value}:
                changed[name] = found
        return changed


def content_of(figures: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> Content:
    """Return what a page shows of some figures."""
    groups, queries = figures["groups"], figures["queries"]
    texts = {"status": status_text(figures)}
    group_of = {each["group"]: each for each in reversed(groups)}
    query_of = {each["function"]: each for each in reversed(queries)}
    failed = []
    for (kind, name), id in note_ids(plans).items():
        is_group = kind == "group"
        texts[id] = _group_note(group_of.get(name)) if is_group else _query_note(query_of.get(name))
        if is_group and has_failed(group_of.get(name, {})):
            failed.append(id)
    rows: dict[str, list[Row]] = {
        "groups": [_group_row(each) for each in groups],
        "more": [_work_row(each) for each in groups],
        "steps": [row for each in groups for row in _step_rows(each)],
        "failures": [
            (each["group"], reason, whole(count))
            for each in groups
            for reason, count in sorted(each["failures"].items(), key=lambda found: -found[1])
        ],
        "errors": _error_rows(groups),
        "recent": _batch_rows(groups),
        "queries": [_query_row(each) for each in queries],
    }
    return Content(
        figures,
        figures["status"],
        {id: printable(text) for id, text in texts.items()},
        {id: [_printable(row) for row in table or _EMPTY] for id, table in rows.items()},
        failed,
    )


def _printable(row: Row) -> Row:
    return tuple(printable(cell) if isinstance(cell, str) else cell for cell in row)


def status_text(figures: Mapping[str, Any]) -> str:
    """Say in one line how the whole is."""
    if figures["status"] == "elsewhere":
        return "The topology runs elsewhere; its queries are answered here."
    failed = [each for each in figures["groups"] if has_failed(each)]
    errors = "".join(f". {each['group']}: {last_error(each)}" for each in failed)
    return f"{figures['status']}, started {moment(figures.get('since'))}{errors}"


def has_failed(group: Mapping[str, Any]) -> bool:
    """Whether a group has failed, by its figures."""
    return group.get("status") == "failed"


def is_failed_row(row: Row) -> bool:
    """Whether a row of the table of groups is that of a failed one."""
    return len(row) > 1 and str(row[1]).startswith("failed")


def last_error(group: Mapping[str, Any], longest: int = _LONGEST_ERROR) -> str:
    """Return what a group has failed with, by its figures; empty if they don't have it."""
    if not group["errors"]:
        return ""
    error = group["errors"][-1]
    return shorten(" ".join(f"{error['reason']}: {error['message']}".split()), longest)


def note_ids(plans: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the ids of the lines of figures in drawings, by their group or query."""
    groups = dict.fromkeys(group["id"] for plan in plans for group in plan["groups"])
    queries = dict.fromkeys(query["function"] for plan in plans for query in plan["queries"])
    return {
        **{("group", id): f"group-{number}" for number, id in enumerate(groups)},
        **{("query", function): f"query-{number}" for number, function in enumerate(queries)},
    }


def _group_note(group: Mapping[str, Any] | None) -> str:
    if group is None:
        return "runs elsewhere"
    if has_failed(group):
        return shorten(f"failed · {last_error(group)}", _LONGEST_NOTE)
    batch = "no batch yet" if group["txid"] is None else f"batch {group['txid']}"
    return f"{group['status']} · {batch} · {rate(group['tuples_per_second'])} tuples/s"


def _query_note(query: Mapping[str, Any] | None) -> str:
    if query is None:
        return "no figures"
    calls = f"{whole(query['calls'])} call{'s' * (query['calls'] != 1)}"
    return calls if query["p50"] is None else f"{calls} · half within {duration(query['p50'])}"


def _group_row(group: Mapping[str, Any]) -> Row:
    return (
        group["group"],
        f"failed: {last_error(group)}" if has_failed(group) else group["status"],
        batch_id(group["txid"]),
        whole(group["tuples"]),
        rate(group["tuples_per_second"]),
        whole(group["attempts"]),
        whole(sum(group["failures"].values())),
        shorten(lag(group["lag"])),
    )


def _work_row(group: Mapping[str, Any]) -> Row:
    names = ("batches", "keys_read", "keys_written", "cache_hits", "late")
    counts = [*(group[name] for name in names), sum(group["bad_tuples"].values())]
    return (group["group"], group["engine"] or NONE, *map(whole, [*counts, group["dead_letters"]]))


def _step_rows(group: Mapping[str, Any]) -> Iterator[Row]:
    total = sum(steps_of(group["seconds"]).values()) or 1.0
    for step in in_order(group["seconds"]):
        seconds = group["seconds"][step]
        each = duration(seconds / group["batches"]) if group["batches"] else NONE
        share = min(seconds / total, 1.0)
        yield (group["group"], step_name(step), each, f"{share:.0%}", share)


def _error_rows(groups: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The last errors of all groups, the newest first."""
    found = [(error["at"], each["group"], error) for each in groups for error in each["errors"]]
    found.sort(key=lambda error: error[0], reverse=True)
    return [
        (
            moment(at),
            group,
            batch_id(error["txid"]),
            whole(error["attempt"]),
            shorten(error["reason"]),
            shorten(error["message"]),
            shorten(error["frame"], 1000),
        )
        for at, group, error in found[:_ERRORS]
    ]


def _batch_rows(groups: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The last batches of each group, the newest first."""
    return [
        (
            each["group"],
            batch_id(batch["txid"]),
            whole(batch["tuples"]),
            whole(batch["attempts"]),
            duration(sum(steps.values())),
            max(steps, key=lambda step: steps[step], default=NONE),
        )
        for each in groups
        for batch in each["recent"][: -_RECENT - 1 : -1]
        for steps in (steps_of(batch["seconds"]),)
    ]


def _query_row(query: Mapping[str, Any]) -> Row:
    counts = (whole(query[name]) for name in ("calls", "failed", "waiting"))
    return (query["function"], *counts, duration(query["p50"]), duration(query["p99"]))


def whole(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def batch_id(txid: int | None) -> str:
    return NONE if txid is None else str(txid)


def rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or not number else f"{number:.1f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    found, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    return f"{found:,.{0 if found >= 100 else 1 if found >= 10 else 2}f} {unit}"


def steps_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the steps of a batch that are no part of another step."""
    return {step: took for step, took in seconds.items() if step not in _PARTS_OF_RUN}


def in_order(seconds: Mapping[str, float]) -> list[str]:
    """Return the steps in their order, each before its parts."""
    steps = list(seconds)
    parts = _PARTS_OF_RUN if "run" in seconds else ()
    return sorted(steps, key=lambda step: steps.index("run" if step in parts else step))


def step_name(step: str) -> str:
    """Name a step, with the step that it is a part of."""
    return f"run: {step}" if step in _PARTS_OF_RUN else step


def moment(iso: str | None) -> str:
    """Write a time to the second."""
    if not iso:
        return NONE
    zone = " UTC" if iso.endswith(("Z", "+00:00")) else ""
    return f"{iso[:19].replace('T', ' ')}{zone}"


def lag(given: Mapping[str, Any] | None) -> str:
    """Say how far a group is behind its sources."""
    if given is None:
        return NONE
    tuples, detail = given.get("tuples"), given.get("detail") or ""
    if tuples is None:
        return detail or NONE
    held = given.get("held_back")
    behind = f", and {whole(held)} behind open transactions" if held else ""
    return f"{whole(tuples)} tuple{'s' * (tuples != 1)}{behind}{f' ({detail})' if detail else ''}"


def shorten(text: object, longest: int = _LONGEST) -> str:
    """Return the beginning of a text that may be long."""
    if text is None:
        return NONE
    found = str(text)
    return found if len(found) <= longest else f"{found[: longest - 1]}…"
