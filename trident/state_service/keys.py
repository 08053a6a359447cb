"""How those who ask write keys: as text, or as a JSON array of a key's fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from trident.drpc.errors import MalformedRequestError
from trident.errors import EmittedValueError, described
from trident.states.map_state import Key
from trident.states.typed_json import needs_tags, tagged, untagged
from trident.tuples.fields import Fields
from trident.tuples.value_types import conformed, fits, python_type

_FORM = 'A key is a text, or a JSON array of its fields, as in ["cat",{"$date":"2026-01-02"}].'


def key_of_text(text: str) -> Key:
    """The key that a part of a URL is: a JSON array where it begins with ``[``, else a text.

    Examples
    --------
    >>> key_of_text("cat"), key_of_text("5"), key_of_text("[5]"), key_of_text('["[a]"]')
    (('cat',), ('5',), (5,), ('[a]',))
    """
    if not text.startswith("["):
        return (text,)
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        problem = f"the key begins with [ and is no JSON ({error}). {_FORM}"
        raise MalformedRequestError(problem) from error
    return key_of_json(tree)


def key_of_json(tree: object) -> Key:
    """The key that a value of JSON is.

    Examples
    --------
    >>> key_of_json("cat"), key_of_json(["cat", {"$date": "2026-01-02"}, 5])
    (('cat',), ('cat', datetime.date(2026, 1, 2), 5))
    """
    if isinstance(tree, str):
        return (tree,)
    if not isinstance(tree, list):
        raise MalformedRequestError(f"a key can't be {described(tree)}. {_FORM}")
    try:
        return tuple(untagged(tree))
    except ValueError as error:
        problem = f"the key {described(tree)} has a field that is none ({error!s:.200}). {_FORM}"
        raise MalformedRequestError(problem) from error


def text_of_key(key: Key) -> str:
    """A key as a part of a URL, before it is escaped; what :func:`key_of_text` reads.

    Examples
    --------
    >>> text_of_key(("cat",)), text_of_key(("[a]",)), text_of_key((5, b"cat"))
    ('cat', '["[a]"]', '[5,{"$binary":"Y2F0"}]')
    """
    if len(key) == 1 and type(key[0]) is str and not key[0].startswith("["):
        return key[0]
    return orjson.dumps(json_of_key(key)).decode()


def json_of_key(key: Key) -> Any:
    """A key as a JSON array of its fields."""
    fields = list(key)
    needs_tags(fields)
    return tagged(fields)


def fitting(state: str, fields: Fields | None, keys: Sequence[Key]) -> Sequence[Key]:
    """Keys in the form that a state's keys have, by the declared types of their fields.

    A whole number becomes a double where one is declared, as in a step; text stays text.

    Where `fields` aren't known every key fits. Raises MalformedRequestError for a key with other
    fields, which can't be in the state.
    """
    if fields is None or not keys:
        return keys
    for key in keys:
        if len(key) != len(fields) or not key:
            raise _misfit(state, fields, f"{len(key)} of them")
    columns = zip(fields, zip(*keys, strict=True), strict=True)
    made = [_column(state, fields, name, values) for name, values in columns]
    return list(zip(*made, strict=True))


def _column(state: str, fields: Fields, name: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values of a field in the form of its type."""
    kind = fields.types[name]
    if kind is None or python_type(kind) is None:
        return values
    try:
        return conformed("a request", name, kind, values)
    except EmittedValueError:
        wrong = next(value for value in values if not fits(kind, value))
        raise _misfit(state, fields, f"{described(wrong)} for {name}") from None


def _misfit(state: str, fields: Fields, found: str) -> MalformedRequestError:
    if not len(fields):
        problem = f"{state!r} keeps a single value, which has no key; found a key"
        return MalformedRequestError(f"{problem}. Leave the key out.")
    named = ", ".join(f"{name} {kind or ''}".strip() for name, kind in fields.types.items())
    problem = f"the keys of {state!r} have the fields: {named}; found {found}"
    advice = 'A key that is no single text is written as JSON: [5], or ["cat",5]'
    return MalformedRequestError(f"{problem}. {advice}.")
