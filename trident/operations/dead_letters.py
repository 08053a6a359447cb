"""Dead letters, the tuples with which a step failed: what each one says, and who writes them."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.states.map_state import MapState
from trident.states.printable import one_line, shortened
from trident.states.typed_json import needs_tags, tagged
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields

_LONGEST = 2_000
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _LONGEST


class Letter(NamedTuple):
    """One dead letter; `tuple` has the fields with their values as JSON."""

    batch_group: str
    batch: object
    step: str
    error: str
    tuple: str


LETTER = Fields.typed((name, "long" if name == "batch" else "string") for name in Letter._fields)


def letter(group: str, batch: object, step: str, error: str, row: dict[str, Any]) -> Letter:
    """The dead letter of a tuple, which any store of text takes."""
    return Letter(group, batch, one_line(step), one_line(shortened(error, _LONGEST)), _json(row))


def _json(row: dict[str, Any]) -> str:
    """The fields as JSON in ASCII, with the tags of `typed_json`; values without such a form become
    text."""
    return json.dumps({name: _tree(value) for name, value in row.items()})


def _tree(value: Any) -> Any:
    try:
        return tagged(value) if needs_tags(value) else value
    except (TypeError, ValueError, RecursionError):
        return _SHOWN.repr(value)


class KeepLetters(StateUpdater[Any]):
    """Keeps dead letters: in a map by batch and number, in a folder or a topic as JSON."""

    def updateState(
        self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        letters = [dict(zip(LETTER.names, each, strict=True)) for each in tuples]
        if isinstance(state, MapState):
            keys = [(each["batch"], number) for number, each in enumerate(letters, 1)]
            named = ("step", "error", "tuple")
            state.multiPut(keys, [{name: each[name] for name in named} for each in letters])
        else:
            for each in letters:
                state.send(json.dumps(each).encode())
