"""``python -m trident state``: look into a state, copy it, remove it, or swap it for another."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from trident.cli.named import HELP, NamedState, check_prefix, find_state, load_name
from trident.cli.shown import Ticker, json_text, key_of, key_text
from trident.plan.substitution import check_free_prefix
from trident.states.backing_map import has_pages
from trident.states.control import GIVEN_BACK, UNFINISHED, ControlRecord
from trident.states.errors import DROPPING, UsageError
from trident.states.keys import decode_key
from trident.states.maps.copying import CopyProgress, copy_state
from trident.states.maps.dropping import check_droppable, drop_state
from trident.states.maps.moving import swap_states
from trident.states.maps.stored_map import StoredMap
from trident.states.printable import one_line

_PARTS = {
    "copy": "copy a state, so that its topology goes on in another place",
    "drop": "remove a state, after saying what would go",
    "get": "print committed values",
    "info": "print the owner of a state, its last batch, and how it is kept",
    "keys": "print the keys that have a committed value",
    "swap": "have states that were built anew take the places of others",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices = parser.add_subparsers(required=True, metavar="what", dest="what")
    parts = {
        name: choices.add_parser(name, help=what, description=f"{what.capitalize()}.")
        for name, what in _PARTS.items()
    }
    copy, drop, get, info, keys, swap = parts.values()
    copy.add_argument("source", metavar="from", help=HELP)
    copy.add_argument(
        "target",
        metavar="to",
        help="the same, as the topology will have it; a URL without prefix= takes that of the "
        "first one",
    )
    copy.add_argument(
        "--map",
        metavar="module:function",
        help="makes the key and the value of the copy: function(key, value) returns both, or None "
        "to leave the key out",
    )
    copy.add_argument("--json", action="store_true", help="print one object in the end")
    copy.set_defaults(part=_copy)
    drop.add_argument("state", help=HELP)
    drop.add_argument("--yes", action="store_true", help="do it; without, only say what would go")
    drop.set_defaults(part=_drop)
    get.add_argument("state", help=HELP)
    get.add_argument(
        "keys",
        nargs="*",
        metavar="key",
        help="a key of one text, or a JSON array of its fields, as '[\"dog\", 2]'; without any the "
        "single value of an aggregate without groups",
    )
    get.add_argument("--json", action="store_true", help="an object on a line for each key")
    get.set_defaults(part=_get)
    info.add_argument("state", help=HELP)
    info.add_argument("--json", action="store_true", help="one object")
    info.set_defaults(part=_info)
    keys.add_argument("state", help=f"{HELP}. Memcached lists no keys")
    keys.add_argument("--values", action="store_true", help="with their values")
    keys.add_argument("--json", action="store_true", help="an object on a line for each key")
    keys.set_defaults(part=_keys)
    swap.add_argument(
        "pairs",
        nargs="+",
        metavar="state prefix",
        help=f"{HELP}; and the prefix of the state that takes its place, in the same store. States "
        "that share batches are named together",
    )
    swap.set_defaults(part=_swap)


def run(arguments: argparse.Namespace) -> int:
    status: int = arguments.part(arguments)
    return status


def _copy(arguments: argparse.Namespace) -> int:
    """Copy it; may be killed and run again."""
    source = find_state(arguments.source)
    transform = None if arguments.map is None else load_name(arguments.map)
    if transform is not None and not callable(transform):
        raise UsageError(f"{arguments.map} is no function, but a", type(transform).__name__)
    with closing(source.open()) as state:
        target = find_state(arguments.target, prefix=state.backing.prefix or None)
        state.locate()  # the copy has the prefix that the topology knows
        if source.store == target.store:
            raise UsageError("from and to are one place:", target.shown)
        ticker = Ticker()

        def tell(progress: CopyProgress) -> None:
            what = {0: "looking through", 1: "copying"}.get(progress.number, "comparing")
            ticker(f"{what} {state.backing.prefix or 'the state'}", progress.entries)

        with closing(target.open()) as copy:
            try:
                copied = copy_state(state, copy, tell, transform=transform)
            except KeyboardInterrupt:
                print("interrupted; the same command goes on", file=sys.stderr)
                raise
            finally:
                ticker.end()
    if arguments.json:
        facts = {
            "entries": copied.entries,
            "written": copied.written,
            "committed": copied.record.committed,
            "log_id": copied.record.log_id,
        }
        print(json.dumps(facts))
        return 0
    print(
        f"{copied.entries:,} entries as of batch {copied.record.committed} are in {target.shown}, "
        f"compared one by one; {copied.written:,} were written"
    )
    return 0


def _drop(arguments: argparse.Namespace) -> int:
    """Say what would go, or remove it; may be killed and run again."""
    named = find_state(arguments.state)
    with closing(named.open()) as state:
        check_droppable(state)
        facts = _facts_of_record(state)
        entries = _count_entries(state)
        what = f"{entries or 0:,} entries of {named.shown}, log id {facts['log_id']}: "
        if not arguments.yes:
            print(f"would remove {what}{facts['status']}")
            print("Stop the topology that updates it. Then give the same command with --yes.")
            return 0
        drop_state(state)
    print(f"removed {what}{facts['status']}")
    return 0


def _get(arguments: argparse.Namespace) -> int:
    """Print the value of each key as JSON, null where it has none; then the status is 1."""
    asked = [key_of(word) for word in arguments.keys]
    with closing(find_state(arguments.state).open()) as state:
        keys = asked or [state.key]
        values = state.multiGet(keys)
    for key, value in zip(keys, values, strict=True):
        if arguments.json:
            print(f'{{"key":{json_text(list(key))},"value":{json_text(value)}}}')
        else:
            print(json_text(value) if len(keys) == 1 else f"{key_text(key)}\t{json_text(value)}")
    return 1 if None in values else 0


def _info(arguments: argparse.Namespace) -> int:
    named = find_state(arguments.state)
    with closing(named.open()) as state:
        facts = {
            **_facts_of_map(named, state),
            **_facts_of_record(state),
            "entries": _count_entries(state),
        }
    if arguments.json:
        print(one_line(json.dumps(facts, ensure_ascii=False)))
        return 0
    width = max(map(len, facts))
    for name, fact in facts.items():
        if fact is not None:
            print(f"{name.replace('_', ' '):{width}}  {_shown(fact)}")
    if facts["entries"] is None:
        print(f"{'entries':{width}}  unknown: this store lists no keys")
    return 0


def _swap(arguments: argparse.Namespace) -> int:
    """Swap them, which may be killed and run again."""
    words = arguments.pairs
    if len(words) % 2:
        raise UsageError("state swap: no prefix is given for", words[-1])
    states = list(zip(map(find_state, words[::2]), words[1::2], strict=True))
    for state, prefix in states:
        check_prefix(prefix)
        if state.plan is not None:
            check_free_prefix(state.plan, state.map_factory, prefix)
    swap_states([(state.map_factory, prefix) for state, prefix in states])
    for state, prefix in states:
        print(f"{state.shown} is the state with the prefix {prefix!r} now")
    return 0


def _shown(fact: object) -> str:
    return f"{fact:,}" if type(fact) is int else one_line(str(fact))


def _facts_of_map(named: NamedState, state: StoredMap) -> Mapping[str, Any]:
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


def _facts_of_record(state: StoredMap) -> Mapping[str, Any]:
    """What the control record says."""
    data = state.backing.getControl()
    if data is None:
        state.control.expect()  # raises, with what there is
        return {"status": "it does not exist", "log_id": None, "committed": None}
    record = ControlRecord.decode(data)
    log_id = record.log_id.removeprefix(UNFINISHED)
    txid, attempt = record.token
    if record.move is not None:
        about = "" if record.move.once is None else "about to be "
        status = f"{about}replaced by the state with the prefix {record.move.to!r}"
    elif record.log_id == GIVEN_BACK:
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


def _count_entries(state: StoredMap) -> int | None:
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


def _keys(arguments: argparse.Namespace) -> int:
    """Print the keys, some at a time; where batches go on meanwhile each is of its own moment."""
    with closing(find_state(arguments.state).open()) as state:
        state.locate()
        state.control.expect()
        for page in state.tables.reading.pages():
            keys = [decode_key(key) for key in dict(page)]
            for key, value in zip(keys, state.multiGet(keys), strict=True):
                if value is None:
                    continue
                if arguments.json:
                    shown = f',"value":{json_text(value)}' if arguments.values else ""
                    print(f'{{"key":{json_text(list(key))}{shown}}}')
                else:
                    shown = f"\t{json_text(value)}" if arguments.values else ""
                    print(f"{key_text(key)}{shown}")
    return 0
