"""All that changes on a page: texts by the id of their element, and the rows of tables.

The server writes them into the page that it sends, and into events; the browser puts those of an
event where the others were, as text. So there is one place that says how figures look, and nothing
that comes with them is ever taken for markup.
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
"""Where there is no figure."""
_LONGEST = 500
_PARTS_OF_RUN = ("compute", "write", "spark")
"""What engines tell of the step ``run``."""


@dataclass(frozen=True)
class Shown:
    """What a page shows at one moment.

    `texts` are by the id of their element, `rows` by the id of the body of their table, and
    `failed` the ids of the lines in drawings that are of groups which have failed.
    """

    figures: Mapping[str, Any]
    status: str
    texts: Mapping[str, str]
    rows: Mapping[str, Sequence[Row]]
    failed: Sequence[str] = ()

    def since(self, before: Shown | None) -> dict[str, Any]:
        """What is not as it was before, as JSON values; empty where all is."""
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


def shown(figures: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> Shown:
    """What a page shows of some figures."""
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
        "groups": [_group(each) for each in groups],
        "more": [_more(each) for each in groups],
        "steps": [row for each in groups for row in _steps(each)],
        "failures": [
            (each["group"], reason, whole(count))
            for each in groups
            for reason, count in sorted(each["failures"].items(), key=lambda found: -found[1])
        ],
        "errors": _errors(groups),
        "recent": _recent(groups),
        "queries": [_query(each) for each in queries],
    }
    return Shown(
        figures,
        figures["status"],
        {id: printable(text) for id, text in texts.items()},
        {id: [_printable(row) for row in found or _EMPTY] for id, found in rows.items()},
        failed,
    )


def _printable(row: Row) -> Row:
    return tuple(printable(cell) if isinstance(cell, str) else cell for cell in row)


def status_text(figures: Mapping[str, Any]) -> str:
    """What is said of the whole, in one line."""
    if figures["status"] == "elsewhere":
        return "The topology runs elsewhere; its queries are answered here."
    failed = [each for each in figures["groups"] if has_failed(each)]
    errors = "".join(f". {each['group']}: {last_error(each)}" for each in failed)
    return f"{figures['status']}, started {moment(figures.get('since'))}{errors}"


def has_failed(told: Mapping[str, Any]) -> bool:
    """Whether a group has failed, of what its figures tell."""
    return told.get("status") == "failed"


def tells_failure(row: Row) -> bool:
    """Whether a row of the groups is of one that has failed."""
    return len(row) > 1 and str(row[1]).startswith("failed")


def last_error(told: Mapping[str, Any], longest: int = _LONGEST_ERROR) -> str:
    """What a group has failed with, of what its figures tell; empty where they don't."""
    if not told["errors"]:
        return ""
    error = told["errors"][-1]
    return shortened(" ".join(f"{error['reason']}: {error['message']}".split()), longest)


def note_ids(plans: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """The ids of the lines of figures in drawings, by what they are of."""
    groups = dict.fromkeys(group["id"] for plan in plans for group in plan["groups"])
    queries = dict.fromkeys(query["function"] for plan in plans for query in plan["queries"])
    return {
        **{("group", id): f"group-{number}" for number, id in enumerate(groups)},
        **{("query", function): f"query-{number}" for number, function in enumerate(queries)},
    }


def _group_note(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return "runs elsewhere"
    if has_failed(told):
        return shortened(f"failed · {last_error(told)}", _LONGEST_NOTE)
    batch = "no batch yet" if told["txid"] is None else f"batch {told['txid']}"
    return f"{told['status']} · {batch} · {rate(told['tuples_per_second'])} tuples/s"


def _query_note(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return "no figures"
    calls = f"{whole(told['calls'])} call{'s' * (told['calls'] != 1)}"
    return calls if told["p50"] is None else f"{calls} · half within {duration(told['p50'])}"


def _group(told: Mapping[str, Any]) -> Row:
    return (
        told["group"],
        f"failed: {last_error(told)}" if has_failed(told) else told["status"],
        batch_id(told["txid"]),
        whole(told["tuples"]),
        rate(told["tuples_per_second"]),
        whole(told["attempts"]),
        whole(sum(told["failures"].values())),
        shortened(lag(told["lag"])),
    )


def _more(told: Mapping[str, Any]) -> Row:
    names = ("batches", "keys_read", "keys_written", "cache_hits", "late")
    counts = [*(told[name] for name in names), sum(told["bad_tuples"].values())]
    shown = map(whole, [*counts, told["dead_letters"]])
    return (told["group"], told["engine"] or NONE, *shown)


def _steps(told: Mapping[str, Any]) -> Iterator[Row]:
    total = sum(steps_of(told["seconds"]).values()) or 1.0
    for step in in_order(told["seconds"]):
        seconds = told["seconds"][step]
        each = duration(seconds / told["batches"]) if told["batches"] else NONE
        share = min(seconds / total, 1.0)
        yield (told["group"], step_name(step), each, f"{share:.0%}", share)


def _errors(groups: Sequence[Mapping[str, Any]]) -> list[Row]:
    found = [(error["at"], each["group"], error) for each in groups for error in each["errors"]]
    found.sort(key=lambda error: error[0], reverse=True)
    return [
        (
            moment(at),
            group,
            batch_id(error["txid"]),
            whole(error["attempt"]),
            shortened(error["reason"]),
            shortened(error["message"]),
            shortened(error["frame"], 1000),
        )
        for at, group, error in found[:_ERRORS]
    ]


def _recent(groups: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The last batches, those of each group together, the newest first."""
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


def _query(told: Mapping[str, Any]) -> Row:
    counts = (whole(told[name]) for name in ("calls", "failed", "waiting"))
    return (told["function"], *counts, duration(told["p50"]), duration(told["p99"]))


def whole(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def batch_id(txid: int | None) -> str:
    """The id of a batch, which is no amount."""
    return NONE if txid is None else str(txid)


def rate(number: float) -> str:
    """So many a second."""
    return f"{number:,.0f}" if number >= 10 or not number else f"{number:.1f}"


def duration(seconds: float | None) -> str:
    """How long something took."""
    if seconds is None:
        return NONE
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    found, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    return f"{found:,.{0 if found >= 100 else 1 if found >= 10 else 2}f} {unit}"


def steps_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """The steps of a batch, without those that are a part of another one."""
    return {step: took for step, took in seconds.items() if step not in _PARTS_OF_RUN}


def in_order(seconds: Mapping[str, float]) -> list[str]:
    """The steps in their order, each before those that are a part of it."""
    steps = list(seconds)
    parts = _PARTS_OF_RUN if "run" in seconds else ()
    return sorted(steps, key=lambda step: steps.index("run" if step in parts else step))


def step_name(step: str) -> str:
    """What a step is called, beside those that it is a part of."""
    return f"run: {step}" if step in _PARTS_OF_RUN else step


def moment(iso: str | None) -> str:
    """A time, to the second, in UTC as it came."""
    if not iso:
        return NONE
    zone = " UTC" if iso.endswith(("Z", "+00:00")) else ""
    return f"{iso[:19].replace('T', ' ')}{zone}"


def lag(told: Mapping[str, Any] | None) -> str:
    """How far a group is behind its sources."""
    if told is None:
        return NONE
    tuples, detail = told.get("tuples"), told.get("detail") or ""
    if tuples is None:
        return detail or NONE
    held = told.get("held_back")
    behind = f", and {whole(held)} behind open transactions" if held else ""
    return f"{whole(tuples)} tuple{'s' * (tuples != 1)}{behind}{f' ({detail})' if detail else ''}"


def shortened(text: object, longest: int = _LONGEST) -> str:
    """The beginning of a text that may be long."""
    if text is None:
        return NONE
    found = str(text)
    return found if len(found) <= longest else f"{found[: longest - 1]}…"
