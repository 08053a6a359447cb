"""Keys and values as the commands read and print them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from trident.states.errors import CorruptStateError, SerializationError, UsageError
from trident.states.keys import decode_key
from trident.states.map_state import Key
from trident.states.printable import one_line
from trident.states.serializers import JSONSerializer

_JSON = JSONSerializer()
_PAUSE = 1.0


def key_of(word: str) -> Key:
    """The key that a word names: its one text, or the fields in a JSON array."""
    if not word.startswith("["):
        return (word,)
    try:
        return decode_key(b"\0" + word.encode())
    except (CorruptStateError, UnicodeEncodeError):
        what = "this key begins as a JSON array, and is not a valid one:"
        advice = 'A key is its one text, or a JSON array of its fields, as in ["dog", 2].'
        raise UsageError(what, word, (), advice) from None


def key_text(key: Sequence[Any]) -> str:
    """The word by which :func:`key_of` finds a key, on one line whatever is in it."""
    [first, *others] = key
    plain = type(first) is str and first.isprintable() and first and not first.startswith("[")
    return first if plain and not others else json_text(list(key))


def json_text(value: Any) -> str:
    """A value as JSON, on one line; what JSON has no form for as its tagged object, or its repr."""
    if value is None:
        return "null"
    try:
        data = _JSON.serialize(value)
    except SerializationError:
        return json.dumps(repr(value))
    return one_line(data.decode().strip())


class Ticker:
    """A line on the terminal that says how far something is, written anew each second.

    Nothing is written where the error output is no terminal.
    """

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()
        self._began = self._shown = time.monotonic()

    def __call__(self, text: str, done: int) -> None:
        """Say that `done` of what `text` names are done."""
        now = time.monotonic()
        if self._shows and now - self._shown >= _PAUSE:
            self._shown = now
            rate = done / (now - self._began)
            sys.stderr.write(f"\r\033[K{text}: {done:,} ({rate:,.0f}/s)")
            sys.stderr.flush()

    def end(self) -> None:
        if self._shows and self._shown != self._began:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
