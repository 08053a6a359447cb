"""``python -m trident state info``: whose a state is, as of which batch, and how it is kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from trident.cli.named import HELP, NamedState, named_state
from trident.cli.shown import Ticker
from trident.states.backing_map import has_pages
from trident.states.control import GIVEN_BACK, UNFINISHED, ControlRecord
from trident.states.errors import DROPPING
from trident.states.maps.stored_map import StoredMap
from trident.states.printable import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("state", help=HELP)
    parser.add_argument("--json", action="store_true", help="one object")


def run(arguments: argparse.Namespace) -> int:
    """Print it, a fact on a line."""
    named = named_state(arguments.state)
    with closing(named.open()) as state:
        facts = {**_kept(named, state), **told_by_record(state), "entries": count_entries(state)}
    if arguments.json:
        print(one_line(json.dumps(facts, ensure_ascii=False)))
        return 0
    width = max(map(len, facts))
    for name, fact in facts.items():
        if fact is not None:
            print(f"{name.replace('_', ' '):{width}}  {_shown(fact)}")
    if facts["entries"] is None:
        print(f"{'entries':{width}}  not told: this store lists no keys")
    return 0


def _shown(fact: object) -> str:
    return f"{fact:,}" if type(fact) is int else one_line(str(fact))


def _kept(named: NamedState, state: StoredMap) -> Mapping[str, Any]:
    """How it is kept, as far as that is declared."""
    found = named.guarantee
    return {
        "state": named.shown,
        "where": state.backing.where,
        "prefix": state.backing.prefix,
        "layout": getattr(named.store, "layout", None),
        "kind": state.kind.value,
        "serializer": type(state.serializer).__name__,
        "guarantee": found and f"{found.level}: {found.why}",
    }


def told_by_record(state: StoredMap) -> Mapping[str, Any]:
    """What the control record says."""
    data = state.backing.getControl()
    if data is None:
        state.control.expect()  # raises, with what there is
        return {"status": "there is none", "log_id": None, "committed": None}
    record = ControlRecord.decode(data)
    log_id = record.log_id.removeprefix(UNFINISHED)
    txid, attempt = record.token
    if record.log_id == GIVEN_BACK:
        status = "given back to Storm"
    elif log_id == DROPPING:
        status = "being removed: drop once more"
    elif record.log_id != log_id:
        status = f"an unfinished copy, as of batch {record.committed}: copy once more"
    elif record.is_unused:
        status = "waits for its first batch"
    elif record.committed >= txid:
        status = f"batch {record.committed} is committed"
    else:
        how = "is written" if record.ready else "has begun"
        status = f"batch {record.committed} is committed, attempt {attempt} of {txid} {how}"
    return {
        "status": status,
        "log_id": log_id,
        "committed": record.committed,
        "begun": list(record.token),
    }


def count_entries(state: StoredMap) -> int | None:
    """How many entries there are, with those of removed keys; None where they aren't listed."""
    backing = state.backing
    if not has_pages(backing):
        return None
    ticker, entries = Ticker(), 0
    for page in backing.pages():
        entries += len(page)
        ticker("counting", entries)
    ticker.end()
    return entries
