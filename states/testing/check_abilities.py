"""Checks of what a map can do beyond the two methods; only declared abilities are checked."""

from __future__ import annotations

from typing import Any

import pytest

from trident.states.backing_map import Ability, IBackingMap, has_pages
from trident.states.testing.checks import Checks, begun, key_of, needs, only_if, record, value_of
from trident.states.values import OpaqueValue

REFUSED = "return False, with nothing written, where the control record is not the fence"


def version(txid: int, attempt: int = 0) -> int:
    return 2**62 | txid << 12 | attempt


class FenceChecks(Checks):
    """``multiPutFenced`` and ``multiRemoveFenced``."""

    @needs(Ability.FENCED)
    def test_a_fenced_write_is_stored(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        keys = [key_of(backing, name) for name in "ab"]
        values = [value_of(backing, number) for number in (1, 2)]
        assert backing.multiPutFenced(keys, values, fence) is True, (
            "multiPutFenced stores and returns True where the control record is the fence"
        )
        assert backing.multiGet(keys) == values

    @needs(Ability.FENCED)
    def test_a_fence_is_used_many_times(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        for number in range(5):
            key = key_of(backing, "key", number)
            assert backing.multiPutFenced([key], [value_of(backing, number)], fence), (
                "a batch is written in chunks, all under one fence"
            )

    @needs(Ability.FENCED)
    def test_no_keys_pass_the_fence_too(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        assert backing.multiPutFenced([], [], fence), "nothing to write is no reason to refuse"

    @needs(Ability.FENCED)
    def test_without_a_record_a_fenced_write_is_refused(self, backing: IBackingMap) -> None:
        self._refused(backing, record(1).encode())

    @needs(Ability.FENCED)
    @pytest.mark.parametrize(
        "own",
        [
            pytest.param(record(5, 0), id="an earlier attempt"),
            pytest.param(record(5, 2), id="a later attempt"),
            pytest.param(record(4, 1), id="an earlier batch"),
            pytest.param(record(6, 1), id="a later batch"),
            pytest.param(record(5, 1, "other"), id="another log"),
            pytest.param(record(5, 1, t3=1), id="other retried batches"),
            pytest.param(record(5, 1).announced(), id="the announced record"),
        ],
    )
    def test_a_fenced_write_is_refused_to(self, backing: IBackingMap, own: Any) -> None:
        begun(backing, record(5, 1))
        self._refused(backing, own.encode())

    @needs(Ability.FENCED)
    def test_announcing_closes_the_fence(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(5))
        begun(backing, record(5).announced())
        self._refused(backing, fence)

    @needs(Ability.FENCED)
    def test_a_late_write_is_refused(self, backing: IBackingMap) -> None:
        late = self.reopen(backing)
        fence = begun(late, record(5))
        keys = [key_of(backing, "key")]
        assert late.multiPutFenced(keys, [value_of(backing, 1)], fence)
        next_fence = begun(backing, record(6))
        assert backing.multiPutFenced(keys, [value_of(backing, 2)], next_fence)
        refused = late.multiPutFenced(keys, [value_of(backing, 3)], fence)
        late.close()
        assert refused is False, REFUSED
        assert backing.multiGet(keys) == [value_of(backing, 2)], REFUSED

    @needs(Ability.FENCED)
    def test_a_refused_write_leaves_the_record(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(5))
        self._refused(backing, record(4).encode())
        assert backing.getControl() == fence, "a refused write leaves the control record alone"

    def _refused(self, backing: IBackingMap, fence: bytes) -> None:
        keys = [key_of(backing, name) for name in "ab"]
        backing.multiPut(keys[:1], [value_of(backing, 1)])
        assert backing.multiPutFenced(keys, [value_of(backing, 9)] * 2, fence) is False, REFUSED
        assert backing.multiGet(keys) == [value_of(backing, 1), None], REFUSED

    @needs(Ability.REMOVE)
    def test_entries_are_removed(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        keys = [key_of(backing, name) for name in "abc"]
        backing.multiPutFenced(keys, [value_of(backing, number) for number in range(3)], fence)
        assert backing.multiRemoveFenced([keys[0], keys[2]], fence) is True
        assert backing.multiGet(keys) == [None, value_of(backing, 1), None], (
            "multiRemoveFenced removes the keys it is given, and no others"
        )

    @needs(Ability.REMOVE)
    def test_absent_keys_are_removed_too(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        assert backing.multiRemoveFenced([key_of(backing, "nobody")], fence) is True, (
            "an absent key counts as removed"
        )

    @needs(Ability.REMOVE)
    def test_a_removed_key_may_come_back(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        keys = [key_of(backing, "key")]
        backing.multiPutFenced(keys, [value_of(backing, 1)], fence)
        backing.multiRemoveFenced(keys, fence)
        backing.multiPutFenced(keys, [value_of(backing, 2)], fence)
        assert backing.multiGet(keys) == [value_of(backing, 2)]

    @needs(Ability.REMOVE)
    def test_a_late_removal_is_refused(self, backing: IBackingMap) -> None:
        fence = begun(backing, record(1))
        keys = [key_of(backing, "key")]
        backing.multiPutFenced(keys, [value_of(backing, 1)], fence)
        begun(backing, record(2))
        assert backing.multiRemoveFenced(keys, fence) is False, REFUSED
        assert backing.multiGet(keys) == [value_of(backing, 1)], REFUSED


class EntryChecks(Checks):
    """``multiGetVersioned`` and ``multiPutVersioned``."""

    @needs(Ability.ENTRY)
    def test_absent_entries_have_a_version(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, name) for name in "ab"]
        found = backing.multiGetVersioned(keys)
        assert [value for value, _ in found] == [None, None]
        versions = [seen for _, seen in found]
        stored = backing.multiPutVersioned(keys, [value_of(backing, 1)] * 2, versions)
        assert stored == [True, True], "the version of an absent entry lets it be created"

    @needs(Ability.ENTRY)
    def test_versions_come_with_the_values(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, name) for name in "abc"]
        backing.multiPut(keys[1:], [value_of(backing, 1), value_of(backing, 2)])
        found = [value for value, _ in backing.multiGetVersioned(keys)]
        assert found == backing.multiGet(keys), "multiGetVersioned finds what multiGet finds"

    @needs(Ability.ENTRY)
    def test_an_entry_as_it_was_read_is_replaced(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, "key")]
        backing.multiPut(keys, [value_of(backing, 1)])
        [(_, seen)] = backing.multiGetVersioned(keys)
        assert backing.multiPutVersioned(keys, [value_of(backing, 2)], [seen]) == [True]
        assert backing.multiGet(keys) == [value_of(backing, 2)]

    @needs(Ability.ENTRY)
    def test_a_changed_entry_is_left(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, "key")]
        backing.multiPut(keys, [value_of(backing, 1)])
        [(_, seen)] = backing.multiGetVersioned(keys)
        other = self.reopen(backing)
        other.multiPut(keys, [value_of(backing, 2)])
        other.close()
        assert backing.multiPutVersioned(keys, [value_of(backing, 3)], [seen]) == [False], (
            "return False for an entry that was written since it was read"
        )
        assert backing.multiGet(keys) == [value_of(backing, 2)], "and leave it as it is"

    @needs(Ability.ENTRY)
    def test_an_entry_created_meanwhile_is_left(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, "key")]
        [(_, seen)] = backing.multiGetVersioned(keys)
        backing.multiPut(keys, [value_of(backing, 2)])
        assert backing.multiPutVersioned(keys, [value_of(backing, 3)], [seen]) == [False], (
            "absent is a version too: refuse where the entry exists now"
        )
        assert backing.multiGet(keys) == [value_of(backing, 2)]

    @needs(Ability.ENTRY)
    def test_each_entry_is_judged_by_itself(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, name) for name in "abc"]
        versions = [seen for _, seen in backing.multiGetVersioned(keys)]
        backing.multiPut(keys[1:2], [value_of(backing, 9)])
        values = [value_of(backing, number) for number in range(3)]
        assert backing.multiPutVersioned(keys, values, versions) == [True, False, True], (
            "answer in the order of the keys; one conflict does not keep the others back"
        )
        assert backing.multiGet(keys) == [values[0], value_of(backing, 9), values[2]]

    @needs(Ability.ENTRY)
    def test_a_version_is_used_once(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, "key")]
        [(_, seen)] = backing.multiGetVersioned(keys)
        assert backing.multiPutVersioned(keys, [value_of(backing, 1)], [seen]) == [True]
        assert backing.multiPutVersioned(keys, [value_of(backing, 2)], [seen]) == [False], (
            "a write changes the version, also for the one who wrote"
        )

    @needs(Ability.ENTRY)
    def test_no_entries_have_no_versions(self, backing: IBackingMap) -> None:
        assert backing.multiGetVersioned([]) == []
        assert backing.multiPutVersioned([], [], []) == []


class VersionChecks(Checks):
    """``multiPutAt``."""

    @needs(Ability.VERSIONED)
    def test_a_value_at_a_version_is_found(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, name) for name in "ab"]
        values = [value_of(backing, 1), value_of(backing, 2)]
        backing.multiPutAt(keys, values, version(1))
        assert backing.multiGet(keys) == values

    @needs(Ability.VERSIONED)
    @pytest.mark.parametrize(
        ("lower", "higher"),
        [
            pytest.param(version(5, 0), version(5, 1), id="attempts"),
            pytest.param(version(5, 4095), version(6, 0), id="batches"),
            pytest.param(version(2**31), version(2**31 + 1), id="large txids"),
        ],
    )
    def test_the_higher_version_shows(self, backing: IBackingMap, lower: int, higher: int) -> None:
        early, late = [key_of(backing, "early")], [key_of(backing, "late")]
        backing.multiPutAt(early, [value_of(backing, 1)], lower)
        backing.multiPutAt(early, [value_of(backing, 2)], higher)
        backing.multiPutAt(late, [value_of(backing, 2)], higher)
        backing.multiPutAt(late, [value_of(backing, 1)], lower)
        assert backing.multiGet(early + late) == [value_of(backing, 2)] * 2, (
            "the highest version shows, whichever write came last"
        )

    @needs(Ability.VERSIONED)
    def test_a_version_is_written_again(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, "key")]
        for _ in range(2):
            backing.multiPutAt(keys, [value_of(backing, 1)], version(3))
        assert backing.multiGet(keys) == [value_of(backing, 1)]

    @needs(Ability.VERSIONED)
    def test_a_late_write_of_many_keys_shows_nowhere(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, name) for name in "abc"]
        backing.multiPutAt(keys[1:], [value_of(backing, 2)] * 2, version(6))
        backing.multiPutAt(keys, [value_of(backing, 1)] * 3, version(5))
        expected = [value_of(backing, 1), value_of(backing, 2), value_of(backing, 2)]
        assert backing.multiGet(keys) == expected, "each key by itself keeps its highest version"

    @needs(Ability.VERSIONED)
    def test_no_keys_have_no_version(self, backing: IBackingMap) -> None:
        backing.multiPutAt([], [], version(1))

    @needs(Ability.EXPIRE)
    def test_what_is_removed_up_to_a_version_leaves_what_is_higher(
        self, backing: IBackingMap
    ) -> None:
        keys = [key_of(backing, name) for name in ("", "b", "c", "d")]
        backing.multiPutAt(keys[:3], [value_of(backing, 1)] * 3, version(5))
        backing.multiPutAt(keys[1:2], [value_of(backing, 2)], version(6))
        backing.multiRemoveUpTo([*keys[:2], keys[3]], version(6) - 1)
        backing.multiRemoveUpTo([], version(7))
        assert backing.multiGet(keys) == [None, value_of(backing, 2), value_of(backing, 1), None]
        backing.multiPutAt(keys[:1], [value_of(backing, 3)], version(6))
        assert backing.multiGet(keys[:1]) == [value_of(backing, 3)], (
            "a write of a higher version shows after a removal"
        )


class AddChecks(Checks):
    """``multiAddFenced``."""

    @needs(Ability.ADD)
    @pytest.mark.parametrize(
        ("stored", "expected"),
        [
            pytest.param(None, (10, None), id="absent"),
            pytest.param(OpaqueValue(6, 0, 5, 4), (15, 5), id="committed"),
            pytest.param(OpaqueValue(6, 1, 5, 4), (14, 4), id="left by a failed attempt"),
            pytest.param(OpaqueValue(3, 1, 5, 4), (15, 5), id="committed by a later attempt"),
            pytest.param(OpaqueValue(3, 0, 5, 4), (14, 4), id="overtaken by a later attempt"),
            pytest.param(OpaqueValue(7, 0, 5, 4), (14, 4), id="of an earlier attempt of ours"),
            pytest.param(OpaqueValue(7, 1, 5, 4), (14, 4), id="ours"),
            pytest.param(OpaqueValue(6, 0, None, 4), (10, None), id="removed"),
            pytest.param(OpaqueValue(6, 1, 5, None), (10, None), id="created by a failed attempt"),
            pytest.param(OpaqueValue(6, 0, 0.5, 4), (10.5, 0.5), id="a float"),
        ],
    )
    def test_an_amount_is_added_to(
        self, backing: IBackingMap, stored: Any, expected: tuple[Any, Any]
    ) -> None:
        own = record(7, 1, t3=1)
        begun(backing, own)
        key = key_of(backing, "key")
        with self.kept(*expected):
            if stored is not None:
                backing.multiPut([key], [stored])
            added = backing.multiAddFenced([key], [10], own.token, own.retried, own.encode())
            assert added is True
            assert backing.multiGet([key]) == [OpaqueValue(7, 1, *expected)], (
                "the amount is added to the committed value, which is kept as prev: curr where the "
                "entry's attempt is the committed one of an earlier batch, else prev"
            )

    @needs(Ability.ADD)
    def test_amounts_are_added_in_any_number(self, backing: IBackingMap) -> None:
        own = record(1)
        begun(backing, own)
        keys = [key_of(backing, f"key {number}") for number in range(2000)]
        assert backing.multiAddFenced([], [], own.token, own.retried, own.encode())
        assert backing.multiAddFenced(keys, range(2000), own.token, own.retried, own.encode())
        found = [entry.curr for entry in backing.multiGet(keys)]
        assert found == list(range(2000))

    @needs(Ability.ADD)
    def test_a_late_amount_is_refused(self, backing: IBackingMap) -> None:
        own = record(1)
        begun(backing, record(2))
        key = key_of(backing, "key")
        added = backing.multiAddFenced([key], [1], own.token, own.retried, own.encode())
        assert added is False, REFUSED
        assert backing.multiGet([key]) == [None], REFUSED


class ListChecks(Checks):
    """``entries`` and ``snapshot``."""

    @needs(Ability.LIST)
    def test_all_entries_are_listed(self, backing: IBackingMap) -> None:
        begun(backing, record(1))
        keys = [key_of(backing, name) for name in "cab"]
        values = [value_of(backing, number) for number in range(3)]
        backing.multiPut(keys, values)
        found = backing.entries()
        assert sorted(found) == sorted(zip(keys, values, strict=True)), (
            "entries() lists every key and its value once, without the control record"
        )

    @needs(Ability.LIST)
    def test_an_empty_store_lists_nothing(self, backing: IBackingMap) -> None:
        assert backing.entries() == []

    def test_the_parts_of_a_map_have_each_key_once(self, backing: IBackingMap) -> None:
        if not has_pages(backing):
            return
        begun(backing, record(1))
        keys = [key_of(backing, "key", number) for number in range(30)]
        backing.multiPut(keys, [value_of(backing, 1)] * 30)
        pages: Any = backing.pages  # of a map with parts it takes one
        for count in 1, 4:
            parts = [() if part is None else (part,) for part in backing.parts(count)]
            found = [key for part in parts for page in pages(*part) for key, _ in page]
            assert sorted(found) == sorted(keys), "each key is in one of parts(), and there once"

    @needs(Ability.SNAPSHOT)
    @only_if("shared")
    def test_a_snapshot_is_of_one_moment(self, backing: IBackingMap) -> None:
        first, second = record(1).encode(), record(2).encode()
        keys = [key_of(backing, name) for name in "ab"]
        backing.putControl(first, None)
        backing.multiPut(keys, [value_of(backing, 1)] * 2)
        other = self.reopen(backing)
        with backing.snapshot():
            seen = [backing.getControl(), *backing.multiGet(keys[:1])]
            other.putControl(second, first)
            other.multiPut(keys, [value_of(backing, 2)] * 2)
            seen += [*backing.multiGet(keys[1:]), backing.getControl()]
        other.close()
        one = value_of(backing, 1)
        assert seen == [first, one, one, first], (
            "inside snapshot() the control record and all keys are of one moment"
        )
        assert backing.multiGet(keys) == [value_of(backing, 2)] * 2, (
            "after snapshot() the map sees what is stored now"
        )

    def test_any_map_has_a_snapshot(self, backing: IBackingMap) -> None:
        with backing.snapshot():
            assert backing.multiGet([key_of(backing, "key")]) == [None]
        with backing.snapshot():
            assert backing.getControl() is None


class LookChecks(Checks):
    """``occupant``."""

    @needs(Ability.LOOK)
    def test_entries_without_a_record_are_noticed(self, backing: IBackingMap) -> None:
        assert backing.occupant() is None, "nothing is in an empty store"
        backing.multiPut([key_of(backing, "dog")], [value_of(backing, 1)])
        other = self.reopen(backing)
        found = other.occupant()
        other.close()
        assert found is not None, "occupant() names an entry where there is one"
        assert "dog" in found, "occupant() names the entry by its key"

    @needs(Ability.LOOK)
    def test_a_record_is_no_entry(self, backing: IBackingMap) -> None:
        begun(backing, record(1))
        assert backing.occupant() is None, "occupant() passes over the state's control record"


class DropChecks(Checks):
    """``drop``."""

    @needs(Ability.DROP)
    def test_a_state_is_dropped_with_its_record(self, backing: IBackingMap) -> None:
        own = begun(backing, record(1))
        keys = [key_of(backing, name) for name in "ab"]
        backing.multiPut(keys, [value_of(backing, 1)] * 2)
        assert backing.drop(record(2).encode()) is False, "the record is another one"
        assert None not in backing.multiGet(keys), "nothing is removed under another record"
        assert backing.drop(own) is True
        assert backing.getControl() is None, "a state that was dropped has no control record"
        begun(backing, record(1))
        assert backing.multiGet(keys) == [None, None], "and begins with no entries"


class TogetherChecks(Checks):
    """``putControls``."""

    @needs(Ability.TOGETHER)
    def test_records_are_replaced_where_they_are_as_expected(self, backing: IBackingMap) -> None:
        first, second = record(1).encode(), record(2).encode()
        change = backing.prefix, second, first
        assert backing.putControls([change]) is False, "no record is there yet"
        backing.putControl(first, None)
        assert backing.putControls([change]) is True, "the record is the expected one"
        assert backing.getControl() == second
        assert backing.putControls([change]) is False, "it is another one by now"
        assert backing.catalog is not None, "states of one catalog are changed together"
