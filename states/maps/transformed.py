"""Entries that a function makes of another state's while they are copied: new keys, new values.

The function is called for each value in an entry; an opaque entry has two. So the copy still has
the values before the last batch, and the attempt that wrote each entry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from trident.states.errors import CopyError
from trident.states.expiry import KeepUntil
from trident.states.keys import decode_key, encode_key
from trident.states.map_state import Key
from trident.states.maps.stored_map import StoredMap
from trident.states.printable import masked
from trident.states.values import Versioned, own_copy

Transform = Callable[[Key, Any], tuple[Key, Any] | None]
"""Makes a key and a value of a key and its value; returns None to leave both out."""


class TransformedEntries:
    """The entries that a function makes of a state's; remembers of which key it made each key.

    They are remembered in a temporary file, as a state may have more keys than fit into memory.
    """

    def __init__(self, source: StoredMap, transform: Transform) -> None:
        self._source = source
        self._transform = transform
        self._sources = sqlite3.connect("")
        self._sources.execute("CREATE TABLE made (key BLOB PRIMARY KEY, source BLOB) WITHOUT ROWID")

    def pages(self) -> Iterator[dict[bytes, Any]]:
        """Yield the entries, page by page.

        Raises CopyError if two keys become one, which would lose a value.
        """
        kind = self._source.kept_as
        for page in self._source.tables.reading.pages():
            found = dict(page)
            columns = kind.by_column(list(found.values()))
            rows = zip(found, zip(*columns, strict=True), strict=True)
            made = {key: row for old, entry in rows for key, row in self._make(old, entry)}
            entries = kind.of_rows(list(made.values()))
            yield dict(zip(made, entries, strict=True))

    def sources(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the old key of each of these keys; None for a key that no page has made so far."""
        find = "SELECT source FROM made WHERE key = ?"
        rows = [self._sources.execute(find, (key,)).fetchone() for key in keys]
        return [row and row[0] for row in rows]

    def close(self) -> None:
        """Remove the file."""
        self._sources.close()

    def _make(self, old: bytes, entry: Sequence[Any]) -> Iterator[tuple[bytes, tuple[Any, ...]]]:
        """Yield the key and the row that are made of an entry, if any are."""
        tokens, key = self._source.kept_as.tokens, decode_key(old)
        made = [self._call(key, value) for value in entry[tokens:]]
        keys = {new for new, _ in made if new is not None}
        if len(keys) > 1:
            shown = " and ".join(_shown(decode_key(new)) for new in sorted(keys))
            raise CopyError(
                f"the function makes two keys of {_shown(key)}: {shown}, of its last value and the "
                "one before",
                "Make a key of the old key alone.",
            )
        for new in keys:
            self._sources.execute("INSERT OR IGNORE INTO made VALUES (?, ?)", (new, old))
            [other] = self.sources([new])
            if other != old:
                both = f"{_shown(decode_key(other or b''))} and {_shown(key)}"
                what = f"the function makes one key of {both}: {_shown(decode_key(new))}"
                raise CopyError(what, "Give each a key of its own: a copy adds nothing up.")
            yield new, (*entry[:tokens], *(value for _, value in made))

    def _call(self, key: Key, value: Any) -> tuple[bytes | None, Any]:
        """Return the encoded key and the value that the function makes; both None for neither."""
        if value is None:
            return None, None
        version = value if type(value) is Versioned else None
        value = version.value if version else value
        kept = value if isinstance(value, KeepUntil) else None
        try:
            # A copy: the value may be the state's own, and the function may change it in place.
            made: Any = self._transform(key, own_copy(kept.value if kept else value))
        except Exception as error:
            raise CopyError(
                f"the function fails for the key {_shown(key)}: {type(error).__name__}: "
                f"{masked(str(error)):.300}",
                "Mend the function, and copy again.",
            ) from error
        match made:
            case None | (_, None):
                return None, None
            case (list() | tuple() as fields, new):
                new = replace(kept, value=new) if kept else new
                return encode_key(fields), version._replace(value=new) if version else new
        raise CopyError(
            f"the function returned {_shown(made)} for the key {_shown(key)}",
            "Return the fields of a key, as a tuple, and a value: return (word, day), n. Return "
            "None to leave the key out.",
        )


def _shown(value: object) -> str:
    return f"{masked(repr(value)):.80}"
