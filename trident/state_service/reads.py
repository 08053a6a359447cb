"""Answers requests for states; requests that come together share one look at each state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from trident.drpc.calls import Answer
from trident.drpc.errors import DRPCError
from trident.drpc.query import IdleObjects, failure_of
from trident.state_service.errors import (
    AnswerTooLargeError,
    NoJSONError,
    NoSuchKeyError,
    StateLeftOutError,
)
from trident.state_service.requests import (
    Keys,
    Read,
    StateRequest,
    Wanted,
    json_of_key,
    read_request,
)
from trident.state_service.served_states import ServedState
from trident.states.errors import NoStateError, UnavailableError
from trident.states.keys import encode_key
from trident.states.map_state import Key
from trident.states.maps.reading import CommittedReads, read_committed, read_latest
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.states.typed_json import needs_tags, tagged
from trident.states.values import StateType

MOST_BYTES = 16 * 2**20
"""What the values of an answer may take as JSON."""


class StateObjects(IdleObjects[State]):
    """The objects of one state; each is used by one thread at a time."""

    def __init__(self, served: ServedState) -> None:
        super().__init__(
            lambda: served.factory.makeState({}, None, 0, 1), lambda state: state.close()
        )
        self.served = served


class _Found(NamedTuple):
    """The values that a state holds for some keys."""

    txid: int | None
    values: Mapping[bytes, Any]
    single: Any


class StateReads:
    """Answers the requests of one queue, in the thread that calls; errors call it `name`."""

    reads = True
    never_waits = False

    def __init__(self, name: str, states: Mapping[str, StateObjects], most_keys: int) -> None:
        self.function = name
        self._states = states
        self._served = {name: state.served for name, state in states.items()}
        self._most_keys = most_keys

    def close(self) -> None:
        """There is nothing to close: the maker of this closes the states."""

    def answer(self, args: str) -> str:
        [answer] = self.answer_together([args])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def answer_together(self, requests: Sequence[str]) -> Sequence[Answer]:
        """Answer some requests; those for the same states read them once, as of one moment."""
        asked = list(map(StateRequest.decode, requests))
        answers: dict[int, Answer] = {}
        together: dict[tuple[Read, frozenset[str]], dict[int, Mapping[str, Wanted]]] = {}
        for number, request in enumerate(asked):
            try:
                wants = read_request(request, self._served, self._most_keys)
            except DRPCError as error:
                answers[number] = error
            else:
                key = request.read, frozenset(wants)
                together.setdefault(key, {})[number] = wants
        for (read, _), wants_of in together.items():
            for number, found in self._look_up(read, wants_of).items():
                if isinstance(found, Exception):
                    answers[number] = found
                else:
                    answers[number] = _answer(asked[number], wants_of[number], found)
        return [answers[number] for number in range(len(requests))]

    def _look_up(
        self, read: Read, wants: Mapping[int, Mapping[str, Wanted]]
    ) -> Mapping[int, Mapping[str, _Found] | Exception]:
        """Return what each request finds, or its failure; it fails no other request."""
        try:
            found = self._read(read, _merge(wants.values()))
        except Exception as error:
            if len(wants) == 1 or isinstance(error, UnavailableError | NoStateError):
                if not isinstance(error, DRPCError):
                    error = failure_of(self.function, "", error)
                return dict.fromkeys(wants, error)
            alone = [self._look_up(read, {number: want}) for number, want in wants.items()]
            return {number: found for each in alone for number, found in each.items()}
        return dict.fromkeys(wants, found)

    def _read(self, read: Read, wants: Mapping[str, tuple[Keys, bool]]) -> Mapping[str, _Found]:
        taken: dict[str, State] = {}
        try:
            for name in wants:
                state = taken[name] = self._states[name].take()
                if not isinstance(state, CommittedReads):
                    why = f"{type(state).__name__} is no map state of this library"
                    raise StateLeftOutError(name, why)

            def ask(views: Sequence[Any]) -> Mapping[str, _Found]:
                return {
                    name: _found(state, view, *wants[name], read)
                    for (name, state), view in zip(taken.items(), views, strict=True)
                }

            if read == "latest":
                return read_latest(list(taken.values()), ask)
            return read_committed(
                [(self._served[name].cut, state) for name, state in taken.items()], ask
            )
        finally:
            for name, state in taken.items():
                self._states[name].give_back(state)


def _merge(wants: Iterable[Mapping[str, Wanted]]) -> Mapping[str, tuple[Keys, bool]]:
    """Return the keys that requests ask of each state, and whether one asks the single value."""
    keys: dict[str, dict[bytes, Key]] = {}
    single: set[str] = set()
    for request in wants:
        for name, want in request.items():
            keys.setdefault(name, {}).update(want.distinct)
            if want.single:
                single.add(name)
    return {name: (found, name in single) for name, found in keys.items()}


def _found(state: State, view: Any, keys: Keys, single: bool, read: Read) -> _Found:
    """Read some keys, and perhaps the single value, from a view by one call."""
    # A map that isn't opaque has no cut: its values are those of this record, or later ones.
    control = None if state.kind is StateType.OPAQUE else state.control
    record = None if control is None else control.last()
    txid = view.txid
    if record is not None:
        txid = record.token.txid if read == "latest" else record.committed
    asked = dict(keys)
    one: bytes | None = None
    if single and isinstance(state, StoredMap):
        one = encode_key(state.key)
        asked[one] = state.key
    values = dict(zip(asked, view.multiGet(asked.values()) if asked else (), strict=True))
    return _Found(txid or None, values, None if one is None else values[one])


def _answer(
    asked: StateRequest, wants: Mapping[str, Wanted], found: Mapping[str, _Found]
) -> Answer:
    """Return the answer to a request as JSON, or its failure."""
    try:
        if asked.form == "states":
            room, states = MOST_BYTES, {}
            for name, want in wants.items():
                states[name], room = _part(name, want, found[name], room)
            return _text({"read": asked.read, "states": states})
        [(name, want)] = wants.items()
        answer: dict[str, Any] = {"state": name, "read": asked.read}
        if asked.form == "key":
            [key] = want.distinct
            fields = want.distinct[key]
            answer["key"] = json_of_key(fields)
            answer |= _one(name, fields, found[name].values[key], found[name])
        elif asked.form == "value":
            answer |= _one(name, None, found[name].single, found[name])
        else:
            answer |= _part(name, want, found[name], MOST_BYTES)[0]
        return _text(answer)
    except DRPCError as error:
        return error


def _text(answer: Mapping[str, Any]) -> str:
    return orjson.dumps(answer).decode()


def _one(name: str, key: Key | None, value: Any, found: _Found) -> Mapping[str, Any]:
    """Return a value that must not be absent, with its batch."""
    if value is None:
        raise NoSuchKeyError(name, _key_text(key), found.txid)
    return {"txid": found.txid, "value": orjson.Fragment(_json(name, key, value))}


def _part(name: str, want: Wanted, found: _Found, room: int) -> tuple[Mapping[str, Any], int]:
    """Return the values of one state, and for how many bytes there is room besides them."""
    if want.single:
        value = _json(name, None, found.single)
        return {"txid": found.txid, "value": orjson.Fragment(value)}, room - len(value)
    json: dict[bytes, bytes] = {}
    for key in want.keys:
        if key not in json:
            json[key] = _json(name, want.distinct[key], found.values[key])
        room -= len(json[key]) + 1
        if room < 0:
            raise AnswerTooLargeError(MOST_BYTES)
    return {"txid": found.txid, "values": [orjson.Fragment(json[key]) for key in want.keys]}, room


def _json(name: str, key: Key | None, value: Any) -> bytes:
    """Write a value as JSON, with tags for what JSON has no form for."""
    try:
        needs_tags(value)
        return orjson.dumps(tagged(value))
    except (TypeError, RecursionError) as error:
        raise NoJSONError(name, _key_text(key), str(error)) from error


def _key_text(key: Key | None) -> str | None:
    return None if key is None else orjson.dumps(json_of_key(key)).decode()
