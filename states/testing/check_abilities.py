"""Checks of abilities of a map that `AbleModel` doesn't check."""

from __future__ import annotations

from typing import Any

import pytest

from trident.states.backing_map import Ability, IBackingMap, has_pages
from trident.states.testing.checks import Checks, begun, key_of, needs, only_if, record, value_of
from trident.states.values import OpaqueValue


class AbilityChecks(Checks):
    """``multiAddFenced``, ``multiRemoveUpTo`` and ``snapshot``."""

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
                "the amount is added to the committed value, which is kept as prev: curr if the "
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
        assert added is False, "an amount is refused where the control record is not the fence"
        assert backing.multiGet([key]) == [None], "a refused call writes nothing"

    def test_the_parts_of_a_map_have_each_key_once(self, backing: IBackingMap) -> None:
        if not has_pages(backing):
            return
        begun(backing, record(1))
        keys = [key_of(backing, "key", number) for number in range(30)]
        backing.multiPut(keys, [value_of(backing, 1)] * 30)
        pages: Any = backing.pages  # takes a part if the map has parts
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

    @needs(Ability.EXPIRE)
    def test_what_is_removed_up_to_a_version_leaves_what_is_higher(
        self, backing: IBackingMap
    ) -> None:
        lower, higher = 2**62 | 5 << 12, 2**62 | 6 << 12
        keys = [key_of(backing, name) for name in ("", "b", "c", "d")]
        backing.multiPutAt(keys[:3], [value_of(backing, 1)] * 3, lower)
        backing.multiPutAt(keys[1:2], [value_of(backing, 2)], higher)
        backing.multiRemoveUpTo([*keys[:2], keys[3]], higher - 1)
        backing.multiRemoveUpTo([], higher + 1)
        assert backing.multiGet(keys) == [None, value_of(backing, 2), value_of(backing, 1), None]
        backing.multiPutAt(keys[:1], [value_of(backing, 3)], higher)
        assert backing.multiGet(keys[:1]) == [value_of(backing, 3)], (
            "a write of a higher version shows after a removal"
        )
