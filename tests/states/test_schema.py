"""Values whose form has changed: kept with a version, and upgraded when they are read."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.states.maps import FencedMap
from trident import Sum
from trident.backends.memory import MemoryStore
from trident.backends.sqlite import SQLiteStore
from trident.states import (
    JSONSerializer,
    KeepUntil,
    MapStateFactory,
    PickleSerializer,
    PutUpdater,
    StateType,
    ValueSchema,
    copy_state,
)
from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError, FailedException, StateError
from trident.states.maps.stored_map import StoredMap
from trident.states.maps.sweeping import sweep
from trident.states.store import OpenedStore
from trident.states.values import Token, Versioned

CALLS: list[tuple[Any, int]] = []


def listed(value: Any, version: int) -> list[Any]:
    """The second form is a list of the first one."""
    CALLS.append((value, version))
    return [value]


LISTED = ValueSchema(2, listed)


@pytest.fixture(params=["memory", "sqlite", "bytes", "pickled", "cached"])
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> MapStateFactory:
    """A factory of opaque maps over each sort of table."""
    CALLS.clear()
    store: Any = SQLiteStore(str(tmp_path / "a.db"), "a")
    match request.param:
        case "memory":
            return MapStateFactory(MemoryStore(str(tmp_path)))
        case "bytes" | "pickled":
            held = FencedMap()
            opened = OpenedStore(lambda: held, "driver", str(tmp_path))
            if request.param == "bytes":
                return MapStateFactory(opened)
            return MapStateFactory(opened, serializer=PickleSerializer())
        case "cached":
            return MapStateFactory(store, cache_size=10, hosted="driver")
    return MapStateFactory(store)


def run(
    state: StoredMap, txid: int, values: dict[str, Any], *, attempt: int = 0, ends: bool = True
) -> None:
    """Put values in a batch; one that doesn't end was killed when all was written."""
    retried = {} if txid == 1 else {1: 0}
    record = ControlRecord("log", Token(txid, attempt), txid - 1, retried)
    state.control.begin(record)
    state.beginCommit(record)
    updaters = [PutUpdater(value) for value in values.values()]
    state.multiUpdate([(key,) for key in values], updaters)
    state.commit(record)
    if ends:
        state.control.ready(record)
        assert state.control.announce(record.confirmed())


def values_of(state: StoredMap, keys: str = "ab") -> list[Any]:
    return state.multiGet([(key,) for key in keys])


def kept(state: StoredMap) -> list[Any]:
    """The values of keys a and b as they are kept."""
    entries = state.as_kept().tables.reading.read([b"a", b"b"])
    return [entry.curr for entry in entries]


def test_a_value_is_upgraded_when_it_is_read_and_kept_so_when_it_is_written(
    factory: MapStateFactory,
) -> None:
    newer = replace(factory, schema=LISTED)
    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
    with closing(newer.makeMap()) as state:
        assert values_of(state) == [[1], [2]]
        run(state, 2, {"a": [1, 1]})
        assert values_of(state) == [[1, 1], [2]]
        assert kept(state) == [Versioned(2, [1, 1]), 2]
    CALLS.clear()
    newest = replace(factory, schema=ValueSchema(4, lambda value, version: (version, value)))
    with closing(newest.makeMap()) as state:
        assert values_of(state) == [(2, [1, 1]), (1, 2)]
    assert CALLS == []


def test_what_an_attempt_has_left_is_taken_back_in_the_new_form(factory: MapStateFactory) -> None:
    newer = replace(factory, schema=LISTED)
    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
        run(state, 2, {"a": 10}, ends=False)
    with closing(newer.makeMap()) as state:
        run(state, 2, {"b": [20]}, attempt=1, ends=False)
        assert values_of(state) == [[1], [2]]
    with closing(newer.makeMap()) as state:
        run(state, 2, {"a": [1, 5]}, attempt=2)
        assert values_of(state) == [[1, 5], [2]]
    assert max(version for _, version in CALLS) == 1, "nothing is upgraded twice"


def test_who_does_not_know_the_form_reads_the_value_and_may_not_update_it(
    factory: MapStateFactory,
) -> None:
    with closing(replace(factory, schema=LISTED).makeMap()) as state:
        run(state, 1, {"a": [1], "b": [2]})
    with closing(factory.makeMap()) as state:
        assert values_of(state) == [[1], [2]]
        assert dict(state.entries()) == {b"a": [1], b"b": [2]} if state.lists else True
        with pytest.raises(StateError, match="holds values with a schema_version"):
            run(state, 2, {"a": 3})
    with (
        closing(replace(factory, schema=ValueSchema(2, listed)).makeMap()) as writer,
        closing(replace(factory, schema=ValueSchema(3, listed)).makeMap()) as newer,
    ):
        run(newer, 2, {"b": [4]}, attempt=1)
        with pytest.raises(
            CorruptStateError, match=r"key \('b',\) .*schema_version 3, .* knows 2 only"
        ):
            values_of(writer)


def test_a_value_that_expires_is_upgraded_and_expires(factory: MapStateFactory) -> None:
    later, past = datetime.now(UTC) + timedelta(hours=1), datetime(2020, 1, 1, tzinfo=UTC)
    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": KeepUntil(1, later), "b": KeepUntil(2, past)})
    with closing(replace(factory, schema=LISTED).makeMap()) as state:
        assert values_of(state) == [[1], None]
        run(state, 2, {"b": KeepUntil([5], later)})
        assert values_of(state) == [[1], [5]]


def test_an_upgrade_may_remove_a_value_and_may_change_it_in_place(tmp_path: Path) -> None:
    def without(value: dict[str, Any], version: int) -> Any:
        return value if value.pop("old", 0) else None

    factory = MapStateFactory(MemoryStore(str(tmp_path)))
    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": {"old": 1, "n": 2}, "b": {}})
    with closing(replace(factory, schema=ValueSchema(2, without)).makeMap()) as state:
        assert values_of(state) == values_of(state) == [{"n": 2}, None]
        assert list(state.getTuples()) == [("a", {"n": 2})]


def test_an_upgrade_that_raises_is_told_with_its_key_and_version(factory: MapStateFactory) -> None:
    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": 1, "b": {"n": 0}})
    odd = replace(factory, schema=ValueSchema(2, lambda value, version: 1 // value["n"]))
    with closing(odd.makeMap()) as state:
        for key, raised in ("a", "TypeError: 'int'"), ("b", "ZeroDivisionError: integer"):
            found = rf"key \('{key}',\) can't be read: .* schema_version 1 to 2 raised {raised}"
            with pytest.raises(CorruptStateError, match=found) as caught:
                values_of(state, key)
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_upgrade_may_have_the_batch_tried_again(factory: MapStateFactory) -> None:
    def away(value: Any, version: int) -> Any:
        raise FailedException("not now")

    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
    with (
        closing(replace(factory, schema=ValueSchema(2, away)).makeMap()) as state,
        pytest.raises(FailedException, match="not now"),
    ):
        values_of(state)


def test_a_copy_keeps_each_value_in_its_form(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "a.db"), "a")
    older, newer = MapStateFactory(store), MapStateFactory(store, schema=LISTED)
    target = MapStateFactory(SQLiteStore(str(tmp_path / "b.db"), "a"))
    with closing(older.makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
    with closing(newer.makeMap()) as state, closing(target.makeMap()) as copy:
        run(state, 2, {"a": [1, 1]})
        copy_state(state, copy)
        assert kept(copy) == [Versioned(2, [1, 1]), 2]
    other = MapStateFactory(SQLiteStore(str(tmp_path / "c.db"), "a"))
    with closing(newer.makeMap()) as state, closing(other.makeMap()) as copy:
        copy_state(state, copy, transform=lambda key, value: (key, value * 2))
        assert kept(copy) == [Versioned(2, [1, 1, 1, 1]), 4]


def test_a_sweep_rewrites_values_in_the_new_form(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "a.db"), "a")
    with closing(MapStateFactory(store).makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
    with closing(MapStateFactory(store, schema=LISTED).makeMap()) as state:
        record = ControlRecord("log", Token(2, 0), 1, {1: 0})
        state.control.begin(record)
        sweep(state, record)
        assert kept(state) == [Versioned(2, [1]), Versioned(2, [2])]
        assert values_of(state) == [[1], [2]]


@pytest.mark.parametrize("kind", [StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL])
def test_other_kinds_keep_versions_too(tmp_path: Path, kind: StateType) -> None:
    factory = MapStateFactory(SQLiteStore(str(tmp_path / "a.db"), "a", kind), kind)
    with closing(factory.makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
    with closing(replace(factory, schema=LISTED).makeMap()) as state:
        run(state, 2, {"a": [7]})
        assert values_of(state) == [[7], [2]]


def test_a_store_that_adds_by_itself_adds_to_no_older_form(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "a.db"), "a")
    with closing(MapStateFactory(store).makeMap()) as state:
        run(state, 1, {"a": 1, "b": 2})
    doubled = ValueSchema(2, lambda value, version: 2 * value)
    with closing(MapStateFactory(store, schema=doubled).makeMap()) as state:
        record = ControlRecord("log", Token(2, 0), 1, {1: 0})
        state.control.begin(record)
        state.beginCommit(record)
        state.multiFold([b"a"], [5], Sum())
        state.commit(record)
        state.control.ready(record)
        state.control.announce(record.confirmed())
        assert values_of(state) == [7, 4]


def test_what_storm_wrote_is_of_the_first_form() -> None:
    store = OpenedStore(lambda: FencedMap({b"a": b"[3,5,4]"}), "driver", "storm's")
    factory = MapStateFactory(store, written_by="storm", schema=LISTED)
    assert values_of(factory.makeMap(), "a") == [[5]]


def test_json_says_the_version_and_a_dict_like_it_stays_one() -> None:
    json = JSONSerializer()
    data = json.serialize([7, Versioned(2, [1]), None])
    assert data == b' [7,{"$schema":[2,[1]]},null]'
    assert json.deserialize(data) == [7, Versioned(2, [1]), None]
    mine = [7, {"$schema": [2, [1]], "at": 1}, {"$schema": [2, UUID(int=1)]}]
    assert json.deserialize(json.serialize(mine)) == mine
    with pytest.raises(ValueError, match="schema"):
        json.deserialize(b' {"$schema":["2",1]}')
