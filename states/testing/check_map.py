"""Checks of every backing map: its two methods and its control record."""

from __future__ import annotations

import pickle
from functools import partial
from threading import Barrier, Thread
from typing import Any, ClassVar

import pytest

from trident.states.backing_map import Ability, Codec, IBackingMap, abilities
from trident.states.control import ControlRecord
from trident.states.errors import SerializationError
from trident.states.testing.checks import (
    ODD_BYTES,
    ODD_KEYS,
    ODD_VALUES,
    Checks,
    in_bulk,
    key_of,
    needs,
    only_if,
    put_and_get,
    record,
    value_of,
    wrong_answers,
)
from trident.states.testing.model import Model, play
from trident.states.values import OpaqueValue, Token


class MapChecks(Checks):
    """The two methods, ``close``, and other maps over the same entries."""

    model: ClassVar[type[Model]] = Model
    """Decides on the calls of the map."""

    def test_the_declared_abilities_are_those_of_the_class(self, backing: IBackingMap) -> None:
        found = abilities(backing)
        assert found == self.abilities, (
            f"the tests declare {sorted(a.name for a in self.abilities)}, the class overrides the "
            f"methods of {sorted(a.name for a in found)}: declare what the map can do, and spell "
            "the methods as IBackingMap does"
        )

    def test_it_does_what_a_dict_would(self) -> None:
        play(self.model, self, self.runs)

    def test_two_new_maps_are_independent(self, backing: IBackingMap) -> None:
        other = self.make_map()
        other.multiPut([key_of(other, "key")], [value_of(other, 1)])
        found = backing.multiGet([key_of(backing, "key")])
        other.close()
        assert found == [None], "make_map() has to give each test a store of its own"

    def test_a_key_may_be_anything(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, *fields) for fields in ODD_KEYS]
        absent, values = [None] * len(keys), [value_of(backing, n) for n in range(len(keys))]
        wrong = wrong_answers("the key", ODD_KEYS, absent, in_bulk(backing.multiGet, keys))
        assert not wrong, f"{wrong}\n\nmultiGet answers None for any key that is absent"
        answers = in_bulk(partial(put_and_get, backing), keys, values)
        wrong = wrong_answers("the key", ODD_KEYS, values, answers)
        assert not wrong, (
            f"{wrong}\n\nevery key works as it is: do not trim, shorten, fold or normalise keys, "
            "compare them byte for byte, and where they come as tuples, by type too (1, 1.0 and "
            "True are three keys)"
        )

    def test_a_value_may_be_anything(self, backing: IBackingMap) -> None:
        values: list[Any] = ODD_BYTES
        if backing.codec is not Codec.BYTES:
            pairs = zip(ODD_VALUES, ODD_VALUES[1:] + ODD_VALUES[:1], strict=True)
            values = [OpaqueValue(7, 1, *pair) for pair in pairs if self.keeps(*pair)]
        keys = [key_of(backing, "key", number) for number in range(len(values))]
        answers = in_bulk(partial(put_and_get, backing), keys, values)
        wrong = wrong_answers("the value at", keys, values, answers)
        assert not wrong, f"{wrong}\n\nevery value comes back equal, and of its type"

    def test_a_value_of_another_type_is_refused(self, backing: IBackingMap) -> None:
        for value in ODD_VALUES:
            if not self.keeps(value):
                with pytest.raises(SerializationError):
                    backing.multiPut([key_of(backing, "key")], [OpaqueValue(7, 1, value, None)])

    def test_many_keys_at_once(self, backing: IBackingMap) -> None:
        keys = [key_of(backing, f"key {number}") for number in range(3000)]
        values = [value_of(backing, number) for number in range(3000)]
        backing.multiPut(keys, values)
        assert backing.multiGet(keys[::-1]) == values[::-1], (
            "a call may have any number of keys: split it where the store has a limit"
        )

    def test_another_thread_may_use_it(self, backing: IBackingMap) -> None:
        found: list[Any] = []

        def use() -> None:
            backing.multiPut([key_of(backing, "key")], [value_of(backing, 1)])
            found.extend(backing.multiGet([key_of(backing, "key")]))

        thread = Thread(target=use)
        thread.start()
        thread.join()
        assert found == [value_of(backing, 1)], (
            "a map is used by one thread at a time, but not always by the one that made it"
        )

    def test_the_entries_outlive_the_map(self) -> None:
        backing = self.make_map()
        backing.multiPut([key_of(backing, "a")], [value_of(backing, 0)])
        backing.flush()
        other = self.reopen(backing)
        backing.close()
        found = other.multiGet([key_of(other, "a")])
        other.close()
        assert found == [value_of(other, 0)], "close() lets go of connections, not of entries"

    @only_if("pickles")
    def test_a_pickled_map_reaches_the_same_entries(self, backing: IBackingMap) -> None:
        backing.multiPut([key_of(backing, "a")], [value_of(backing, 0)])
        other: IBackingMap = pickle.loads(pickle.dumps(backing))
        found = other.multiGet([key_of(other, "a")])
        other.close()
        assert found == [value_of(backing, 0)], (
            "a pickled map has to reach the same store: pickle its configuration, not its "
            "connection; or set `pickles = False` and let the factory open it"
        )

    def test_it_may_be_closed_twice(self) -> None:
        backing = self.make_map()
        backing.multiPut([key_of(backing, "a")], [value_of(backing, 0)])
        backing.close()
        backing.close()

    def test_it_may_be_closed_unused(self) -> None:
        self.make_map().close()


class ControlChecks(Checks):
    """``getControl`` and ``putControl``."""

    def test_a_long_record_comes_back(self, backing: IBackingMap) -> None:
        retried = dict.fromkeys(range(1, 20000, 3), 1)
        long = ControlRecord("caf\u00e9", Token(20_000, 3), 19_999, retried).encode()
        assert backing.putControl(long, None)
        assert backing.getControl() == long, "a control record has any length, and exact bytes"
        assert backing.putControl(b"short", long)

    def test_the_record_is_no_entry(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        keys = [key_of(backing, *fields) for fields in ODD_KEYS]
        found = backing.multiGet(keys)
        assert found == [None] * len(keys), "no key of a user may reach the control record"
        backing.multiPut(keys, [value_of(backing, 1)] * len(keys))
        assert backing.getControl() == b"one", "no key of a user may replace the control record"

    @needs(Ability.FENCED)
    def test_of_many_who_replace_the_record_one_at_most_does(self, backing: IBackingMap) -> None:
        first, later = record(1).encode(), [record(2, number).encode() for number in range(4)]
        backing.putControl(first, None)
        maps = [self.reopen(backing) for _ in later]
        gate, won = Barrier(len(maps)), []

        def replace(number: int) -> None:
            gate.wait()
            if maps[number].putControl(later[number], first):
                won.append(later[number])

        threads = [Thread(target=replace, args=[number]) for number in range(len(maps))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in maps:
            other.close()
        assert len(won) <= 1, (
            f"{len(won)} of 4 threads replaced one record: compare and put in one atomic step"
        )
        # In a store of several shards each of them may have lost one shard to another.
        found = backing.getControl()
        assert won in ([], [found]), "the record is the one that putControl returned True for"
        assert backing.putControl(record(2, 9).encode(), found), (
            "whoever comes next, alone and with a later attempt, replaces what the others left"
        )
