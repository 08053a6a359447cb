"""The entries of a state as a function makes them while they are copied: other keys, other values.

The function is called for each value that an entry keeps, two of an opaque one. So the copy
still tells the batch before the last one, and each batch that counts by its own attempt.
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
from trident.states.values import Versioned, own

Transform = Callable[[Key, Any], tuple[Key, Any] | None]
"""Makes a key and a value of a key and its value; None leaves both out."""


class TransformedEntries:
    """The entries of a state, each made by a function; it remembers which key each key is made of.

    That is in a file, which is gone when this is closed: a state may have more keys than memory.
    """

    def __init__(self, source: StoredMap, transform: Transform) -> None:
        self._source = source
        self._transform = transform
        self._made = sqlite3.connect("")
        self._made.execute("CREATE TABLE made (key BLOB PRIMARY KEY, source BLOB) WITHOUT ROWID")

    def pages(self) -> Iterator[dict[bytes, Any]]:
        """Yield the entries, some at a time.

        Raises CopyError where two keys become one: one of the two values would be lost.
        """
        kind = self._source.kept_as
        for page in self._source.tables.reading.pages():
            found = dict(page)
            columns = kind.by_column(list(found.values()))
            rows = zip(found, zip(*columns, strict=True), strict=True)
            made = {key: row for old, entry in rows for key, row in self._row(old, entry)}
            entries = kind.of_rows(list(made.values()))
            yield dict(zip(made, entries, strict=True))

    def sources(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return what each of these keys is made of, as far as pages have come; None: of none."""
        find = "SELECT source FROM made WHERE key = ?"
        rows = [self._made.execute(find, (key,)).fetchone() for key in keys]
        return [row and row[0] for row in rows]

    def close(self) -> None:
        """Remove the file."""
        self._made.close()

    def _row(self, old: bytes, entry: Sequence[Any]) -> Iterator[tuple[bytes, tuple[Any, ...]]]:
        """Yield the entry that is made of one, if there is any."""
        tokens, key = self._source.kept_as.tokens, decode_key(old)
        made = [self._call(key, value) for value in entry[tokens:]]
        keys = {new for new, _ in made if new is not None}
        if len(keys) > 1:
            shown = " and ".join(_shown(decode_key(new)) for new in sorted(keys))
            raise CopyError(
                f"of the key {_shown(key)} two keys are made, {shown}, of its last value and the "
                "one before",
                "Make a key of the old key alone.",
            )
        for new in keys:
            self._made.execute("INSERT OR IGNORE INTO made VALUES (?, ?)", (new, old))
            [other] = self.sources([new])
            if other != old:
                what = f"of the keys {_shown(decode_key(other or b''))} and {_shown(key)} one key "
                advice = "Give each a key of its own: a copy adds nothing up."
                raise CopyError(f"{what}is made, {_shown(decode_key(new))}", advice)
            yield new, (*entry[:tokens], *(value for _, value in made))

    def _call(self, key: Key, value: Any) -> tuple[bytes | None, Any]:
        """Return the encoded key and the value that are made of one; both None where none are."""
        if value is None:
            return None, None
        version = value if type(value) is Versioned else None
        value = version.value if version else value
        kept = value if isinstance(value, KeepUntil) else None
        try:
            # A copy, as what a function changes in place may be the state's own.
            made: Any = self._transform(key, own(kept.value if kept else value))
        except Exception as error:
            raise CopyError(
                f"of the key {_shown(key)} nothing can be made: {type(error).__name__}: "
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
            f"of the key {_shown(key)} the function has made {_shown(made)}",
            "Return the fields of a key, as a tuple, and a value: return (word, day), n. Return "
            "None to leave the key out.",
        )


def _shown(value: object) -> str:
    return f"{masked(repr(value)):.80}"
