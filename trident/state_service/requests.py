"""Requests for states: how keys are written, a request as text, and what it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import orjson

from trident.drpc.errors import MalformedRequestError
from trident.errors import EmittedValueError, described
from trident.state_service.errors import TooManyKeysError
from trident.state_service.served_states import ServedState
from trident.states.errors import SerializationError
from trident.states.keys import encode_keys
from trident.states.map_state import Key
from trident.states.typed_json import needs_tags, tagged, untagged
from trident.tuples.fields import Fields
from trident.tuples.value_types import conform, fits, python_type

Read = Literal["committed", "latest"]
"""Whether to read what batches have committed, or what was written last."""
READS: tuple[Read, ...] = get_args(Read)
Form = Literal["key", "value", "keys", "states", "txid"]
"""What a request is for: one key, the single value, several keys, several states, or the batch."""

_FORM = 'A key is a text, or a JSON array of its fields, as in ["cat",{"$date":"2026-01-02"}].'


class StateRequest(NamedTuple):
    """A request before it is checked.

    `state` is the name of the state, or the sorted names of several. `text` is the key as it was in
    the URL, or the body.
    """

    read: Read
    form: Form
    state: str = ""
    text: str = ""

    def encode(self) -> str:
        return orjson.dumps(list(self)).decode()

    @staticmethod
    def decode(text: str) -> StateRequest:
        return StateRequest(*orjson.loads(text))


Keys = Mapping[bytes, Key]
"""Keys by their encoded form, by which they are compared."""


class Wanted(NamedTuple):
    """What a request asks of one state.

    `keys` are in the order of the answer, some perhaps repeatedly; `distinct` has each of them
    once, with its fields. `single` asks for the single value in place of keys.
    """

    keys: Sequence[bytes] = ()
    distinct: Keys = {}  # noqa: RUF012 - nobody changes it
    single: bool = False


def read_request(
    asked: StateRequest, states: Mapping[str, ServedState], most_keys: int
) -> Mapping[str, Wanted]:
    """Return what a request asks of each state."""
    if asked.form == "txid":
        return {asked.state: Wanted()}
    if asked.form == "value":
        return {asked.state: _single(states[asked.state])}
    try:
        if asked.form == "key":
            return {asked.state: _keys(states[asked.state], [key_of_text(asked.text)])}
        if asked.form == "states":
            keys_of = named_states(asked.text)
        else:
            keys_of = {asked.state: _member(_json(asked.text), "keys", list)}
        number = sum(1 if keys is None else len(keys) for keys in keys_of.values())
        if number > most_keys:
            raise TooManyKeysError(number, most_keys)
        return {
            name: _single(states[name])
            if keys is None
            else _keys(states[name], list(map(key_of_json, keys)))
            for name, keys in keys_of.items()
        }
    except RecursionError as error:
        raise MalformedRequestError("it is nested too deeply") from error


def named_states(body: str) -> Mapping[str, list[Any] | None]:
    """Return the keys of each state that a body names; None for a single value."""
    states: dict[str, Any] = _member(_json(body), "states", dict)
    for name, keys in states.items():
        if keys is not None and not isinstance(keys, list):
            problem = f"of {name!r:.200} there is a {type(keys).__name__} in place of keys"
            advice = "Give an array of keys, or null for the value of a state without keys"
            raise MalformedRequestError(f"{problem}. {advice}.")
    if not states:
        raise MalformedRequestError("no state is named")
    return states


def _json(body: str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedRequestError(f"the body is no JSON ({error})") from error


def _member(tree: Any, name: str, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """Return the only member of an object, of type `kind`."""
    if isinstance(tree, dict) and tree.keys() == {name} and isinstance(tree[name], kind):
        return tree[name]
    shown = '{"keys": ["cat", ["dog", 5]]}' if name == "keys" else '{"states": {"count": ["cat"]}}'
    found = f"an object with {list(tree)}" if isinstance(tree, dict) else type(tree).__name__
    raise MalformedRequestError(f"the body is to be as {shown}; found {found:.200}")


def _single(state: ServedState) -> Wanted:
    if state.key is not None and len(state.key):
        problem = f"the values of {state.name!r} have keys, of the fields {state.key}. Give one"
        raise MalformedRequestError(problem)
    return Wanted(single=True)


def _keys(state: ServedState, given: Sequence[Key]) -> Wanted:
    keys = convert_keys(state.name, state.key, given)
    try:
        encoded = encode_keys(keys)
    except SerializationError as error:
        raise MalformedRequestError(str(error)) from error
    return Wanted(encoded, dict(zip(encoded, keys, strict=True)))


def key_of_text(text: str) -> Key:
    """Read a key from a part of a URL: a JSON array if it begins with ``[``, else a text."""
    if not text.startswith("["):
        return (text,)
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        problem = f"the key begins with [ and is no JSON ({error}). {_FORM}"
        raise MalformedRequestError(problem) from error
    return key_of_json(tree)


def key_of_json(tree: object) -> Key:
    """Read a key from a value of JSON."""
    if isinstance(tree, str):
        return (tree,)
    if not isinstance(tree, list):
        raise MalformedRequestError(f"a key can't be {described(tree)}. {_FORM}")
    try:
        return tuple(untagged(tree))
    except ValueError as error:
        problem = f"the key {described(tree)} has an invalid field ({error!s:.200}). {_FORM}"
        raise MalformedRequestError(problem) from error


def text_of_key(key: Key) -> str:
    """Write a key as a part of a URL, before it is escaped; :func:`key_of_text` reads it."""
    if len(key) == 1 and type(key[0]) is str and not key[0].startswith("["):
        return key[0]
    return orjson.dumps(json_of_key(key)).decode()


def json_of_key(key: Key) -> Any:
    """Write a key as a JSON array of its fields."""
    fields = list(key)
    needs_tags(fields)
    return tagged(fields)


def convert_keys(state: str, fields: Fields | None, keys: Sequence[Key]) -> Sequence[Key]:
    """Convert keys to the declared types of a state's keys.

    A whole number becomes a double where one is declared, as in a step; text stays text. If
    `fields` aren't known every key fits. Raises MalformedRequestError for a key with other fields,
    which can't be in the state.
    """
    if fields is None or not keys:
        return keys
    for key in keys:
        if len(key) != len(fields) or not key:
            raise _misfit(state, fields, f"{len(key)} of them")
    columns = zip(fields, zip(*keys, strict=True), strict=True)
    converted = [_convert_column(state, fields, name, values) for name, values in columns]
    return list(zip(*converted, strict=True))


def _convert_column(state: str, fields: Fields, name: str, values: Sequence[Any]) -> Sequence[Any]:
    kind = fields.types[name]
    if kind is None or python_type(kind) is None:
        return values
    try:
        return conform("a request", name, kind, values)
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
