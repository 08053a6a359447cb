"""The stores in memory, a user's own, and the memory state that forgets pass the suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, ClassVar
from unicodedata import normalize

import pytest

from tests.states.abilities import (
    ComparedMap,
    EntryMap,
    ExpiringMap,
    FencedMap,
    PlainMap,
    VersionedMap,
)
from trident.backends.memory import MemoryMap
from trident.states import Ability, Codec, IBackingMap
from trident.states.testing.suite import BackingMapConformance

_NUMBERS = count()


class TestPlainMap(BackingMapConformance):
    def make_map(self) -> IBackingMap:
        return PlainMap()


class TestFencedMap(BackingMapConformance):
    abilities = frozenset({Ability.FENCED, Ability.REMOVE})

    def make_map(self) -> IBackingMap:
        return FencedMap()


class TestComparedMap(BackingMapConformance):
    abilities = frozenset({Ability.ENTRY})

    def make_map(self) -> IBackingMap:
        return ComparedMap()


class TestEntryMap(BackingMapConformance):
    abilities = frozenset({Ability.ENTRY})

    def make_map(self) -> IBackingMap:
        return EntryMap()


class TestVersionedMap(BackingMapConformance):
    abilities = frozenset({Ability.VERSIONED})

    def make_map(self) -> IBackingMap:
        return VersionedMap()


class TestExpiringMap(BackingMapConformance):
    abilities = frozenset({Ability.VERSIONED, Ability.EXPIRE})

    def make_map(self) -> IBackingMap:
        return ExpiringMap()


class TestLRUMemoryMap(BackingMapConformance):
    abilities = frozenset({Ability.FENCED, Ability.REMOVE, Ability.LIST, Ability.LOOK})

    def make_map(self) -> IBackingMap:
        return MemoryMap(f"conformance {next(_NUMBERS)}", size=5000)


class DictMap(IBackingMap):
    """What a user writes first: two methods over a dict."""

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries_by_key = entries

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return [self.entries_by_key.get(self._name(key)) for key in keys]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.entries_by_key.update(zip(map(self._name, keys), values, strict=True))

    def _name(self, key: Any) -> Any:
        return key


class ObjectMap(DictMap):
    """The same of value objects."""

    codec = Codec.VALUES


class FieldsMap(DictMap):
    """The same of key fields and value objects, which tells 1 from True."""

    codec = None

    def _name(self, key: Any) -> Any:
        return repr(key)


class ConditionalFieldsMap(FieldsMap):
    """The same, which writes an entry only where it still has the value that was read."""

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        same = [a == b for a, b in zip(self.multiGet(keys), versions, strict=True)]
        for key, value, fits in zip(keys, values, same, strict=True):
            if fits:
                self.multiPut([key], [value])
        return same


class DictConformance(BackingMapConformance):
    pickles = False
    kind: ClassVar[type[DictMap]]

    def make_map(self) -> IBackingMap:
        return self.kind({})

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        assert isinstance(backing, DictMap)
        return type(backing)(backing.entries_by_key)


class TestDictMap(DictConformance):
    kind = DictMap


class TestObjectMap(DictConformance):
    kind = ObjectMap


class TestFieldsMap(DictConformance):
    kind = FieldsMap


class TestConditionalFieldsMap(DictConformance):
    kind = ConditionalFieldsMap
    abilities = frozenset({Ability.ENTRY})


class TestSuite:
    """The suite itself."""

    def test_it_has_its_checks(self) -> None:
        names = [name for name in dir(BackingMapConformance) if name.startswith("test_")]
        assert len(names) >= 30

    def test_checks_of_other_abilities_are_left_out(self) -> None:
        assert callable(TestFencedMap.test_of_many_who_replace_the_record_one_at_most_does)
        assert TestPlainMap.test_of_many_who_replace_the_record_one_at_most_does is None

    def test_an_undeclared_ability_fails(self) -> None:
        class Undeclared(BackingMapConformance):
            def make_map(self) -> IBackingMap:
                return FencedMap()

        suite = Undeclared()
        with pytest.raises(AssertionError, match="declare what the map can do"):
            suite.test_the_declared_abilities_are_those_of_the_class(suite.make_map())

    @pytest.mark.parametrize(
        ("broken", "told"),
        [
            pytest.param(str.lower, ["Key", "key"], id="case is folded"),
            pytest.param(str.strip, ["key ", "key"], id="spaces are trimmed"),
            pytest.param(
                partial(normalize, "NFC"), ["caf\u00e9", "cafe\u0301"], id="Unicode is normalised"
            ),
        ],
    )
    def test_each_key_that_does_not_come_back_is_told(
        self, broken: Callable[[str], str], told: list[str]
    ) -> None:
        class Broken(FieldsMap):
            def _name(self, key: Any) -> Any:
                return repr(tuple(broken(each) if isinstance(each, str) else each for each in key))

        lost, other = (re.escape(ascii((key,))) for key in told)
        with pytest.raises(AssertionError, match=f"the key {lost}: .* became .*, that of {other}"):
            TestFieldsMap().test_a_key_may_be_anything(Broken({}))

    def test_a_key_that_is_refused_is_told(self) -> None:
        class Short(FieldsMap):
            def _name(self, key: Any) -> Any:
                if len(repr(key)) > 5_000:
                    raise ValueError("the key is too long")
                return super()._name(key)

        with pytest.raises(AssertionError, match="kkk.*: None became ValueError"):
            TestFieldsMap().test_a_key_may_be_anything(Short({}))
