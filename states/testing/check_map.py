"""Checks of what every backing map has: the two methods, and the control record."""

from __future__ import annotations

import pickle
from functools import partial
from threading import Barrier, Thread
from typing import Any

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
from trident.states.values import OpaqueValue, Token


class MapChecks(Checks):
    """``multiGet``, ``multiPut``, ``close``, and reaching the same entries elsewhere."""

    def test_the_declared_abilities_are_those_of_the_class(self, backing: IBackingMap) -> None:
        found = abilities(backing)
        assert found == self.abilities, (
            f"the tests declare {sorted(a.name for a in self.abilities)}, the class overrides the "
            f"methods of {sorted(a.name for a in found)}: declare what the map can do, and spell "
            "the methods as IBackingMap does"
        )

    def test_two_new_maps_are_independent(self, backing: IBackingMap) -> None:
        other = self.make_map()
        other.multiPut([key_of(other, "key")], [value_of(other, 1)])
        found = backing.multiGet([key_of(backing, "key")])
        other.close()
        assert found == [None], "make_map() has to give each test a store of its own"

    def test_an_absent_key_is_none(self, backing: IBackingMap) -> None:
        found = backing.multiGet([key_of(backing, "nobody"), key_of(backing, "nothing")])
        assert found == [None, None], "multiGet answers None for a key that is absent"

    def test_a_list_is_returned(self, backing: IBackingMap) -> None:
        found = backing.multiGet([key_of(backing, "nobody")])
        assert isinstance(found, list), f"multiGet returns a list, not {type(found).__name__}"

    def test_values_come_back(self, backing: IBackingMap) -> None:
        backing.multiPut([key_of(backing, "key")], [value_of(backing, 1)])
        assert backing.multiGet([key_of(backing, "key")]) == [value_of(backing, 1)], (
            "multiGet returns what multiPut stored"
        )

    def test_answers_are_in_the_order_of_the_keys(self, backing: IBackingMap) -> None:
        names = ["one", "two", "three", "four", "five"]
        self._store(backing, names)
        asked = ["four", "one", "five", "three", "two"]
        found = backing.multiGet([key_of(backing, name) for name in asked])
        assert found == [value_of(backing, names.index(name)) for name in asked], (
            "multiGet answers in the order of the keys it was given, not the store's"
        )

    def test_absent_keys_keep_their_place(self, backing: IBackingMap) -> None:
        self._store(backing, ["b", "d"])
        found = backing.multiGet([key_of(backing, name) for name in "abcde"])
        assert found == [None, value_of(backing, 0), None, value_of(backing, 1), None], (
            "multiGet answers each key at its place, also where others are absent"
        )

    def test_a_repeated_key_is_answered_each_time(self, backing: IBackingMap) -> None:
        self._store(backing, ["a"])
        asked = [key_of(backing, name) for name in "abaa"]
        found = backing.multiGet(asked)
        one = value_of(backing, 0)
        assert found == [one, None, one, one], "multiGet answers a repeated key each time"

    def test_what_is_asked_for_is_what_one_call_reads(self, backing: IBackingMap) -> None:
        self._store(backing, ["a", "b"])
        some, none = ([key_of(backing, name) for name in names] for names in ("acba", ""))
        waits = [backing.ask(keys) for keys in (some, none, some)]
        found = [backing.multiGet(keys) for keys in (some, none, some)]
        assert [wait() for wait in waits] == found, (
            "ask returns what waits for the values of multiGet, also where several are asked first"
        )
        assert backing.askControl()() == backing.getControl(), (
            "askControl returns what waits for the record of getControl"
        )

    def test_an_answer_that_nobody_waits_for_disturbs_nobody(self, backing: IBackingMap) -> None:
        self._store(backing, ["a"])
        for ask in (partial(backing.ask, [key_of(backing, "a")]), backing.askControl):
            ask()
            found = backing.multiGet([key_of(backing, "a"), key_of(backing, "b")])
            assert found == [value_of(backing, 0), None], (
                "what was asked for and never waited for takes its answer from nobody else"
            )

    def test_no_keys_give_no_answers(self, backing: IBackingMap) -> None:
        assert backing.multiGet([]) == [], "multiGet of no keys returns an empty list"

    def test_no_keys_store_nothing(self, backing: IBackingMap) -> None:
        self._store(backing, ["a"])
        backing.multiPut([], [])
        assert backing.multiGet([key_of(backing, "a")]) == [value_of(backing, 0)], (
            "multiPut of no keys changes nothing"
        )

    def test_a_value_is_replaced(self, backing: IBackingMap) -> None:
        key = key_of(backing, "key")
        backing.multiPut([key], [value_of(backing, 1)])
        backing.multiPut([key], [value_of(backing, 2)])
        assert backing.multiGet([key]) == [value_of(backing, 2)], "multiPut replaces a value"

    def test_other_keys_stay(self, backing: IBackingMap) -> None:
        self._store(backing, ["a", "b"])
        backing.multiPut([key_of(backing, "b")], [value_of(backing, 9)])
        assert backing.multiGet([key_of(backing, "a")]) == [value_of(backing, 0)], (
            "multiPut leaves the keys alone that it was not given"
        )

    def test_tuples_are_taken_too(self, backing: IBackingMap) -> None:
        backing.multiPut((key_of(backing, "key"),), (value_of(backing, 1),))
        assert backing.multiGet((key_of(backing, "key"),)) == [value_of(backing, 1)], (
            "keys and values come as any sequence, not only as lists"
        )

    def test_arguments_are_left_as_they_were(self, backing: IBackingMap) -> None:
        keys, values = [key_of(backing, "b"), key_of(backing, "a")], [value_of(backing, 1)] * 2
        expected = list(keys), list(values)
        backing.multiPut(keys, values)
        backing.multiGet(keys)
        assert (keys, values) == expected, "the lists belong to the caller: do not change them"

    def test_arguments_are_not_kept(self, backing: IBackingMap) -> None:
        keys, values = [key_of(backing, "a")], [value_of(backing, 1)]
        backing.multiPut(keys, values)
        keys[0], values[0] = key_of(backing, "b"), value_of(backing, 2)
        found = backing.multiGet([key_of(backing, "a"), key_of(backing, "b")])
        assert found == [value_of(backing, 1), None], (
            "the caller may use its lists again: copy what is needed later"
        )

    def test_an_answer_belongs_to_the_caller(self, backing: IBackingMap) -> None:
        self._store(backing, ["a"])
        keys = [key_of(backing, "a")]
        answer: Any = backing.multiGet(keys)
        answer.clear()
        assert backing.multiGet(keys) == [value_of(backing, 0)], (
            "the caller may change the list it got: return a new one each time"
        )

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

    def test_another_map_finds_the_entries(self, backing: IBackingMap) -> None:
        self._store(backing, ["a", "b"])
        other = self.reopen(backing)
        found = other.multiGet([key_of(other, name) for name in "abc"])
        other.close()
        assert found == [value_of(backing, 0), value_of(backing, 1), None], (
            "what multiPut stored is there for another process as soon as it returns"
        )

    @only_if("shared")
    def test_what_another_map_stores_is_found(self, backing: IBackingMap) -> None:
        self._store(backing, ["a"])
        other = self.reopen(backing)
        other.multiPut([key_of(other, "a")], [value_of(other, 5)])
        other.close()
        assert backing.multiGet([key_of(backing, "a")]) == [value_of(backing, 5)], (
            "multiGet asks the store each time: somebody else may have written"
        )

    def test_the_entries_outlive_the_map(self) -> None:
        backing = self.make_map()
        self._store(backing, ["a"])
        backing.flush()
        other = self.reopen(backing)
        backing.close()
        found = other.multiGet([key_of(other, "a")])
        other.close()
        assert found == [value_of(other, 0)], "close() lets go of connections, not of entries"

    @only_if("pickles")
    def test_a_pickled_map_reaches_the_same_entries(self, backing: IBackingMap) -> None:
        self._store(backing, ["a"])
        other: IBackingMap = pickle.loads(pickle.dumps(backing))
        found = other.multiGet([key_of(other, "a")])
        other.close()
        assert found == [value_of(backing, 0)], (
            "a pickled map has to reach the same store: pickle its configuration, not its "
            "connection; or set `pickles = False` and let the factory open it"
        )

    def test_it_may_be_closed_twice(self) -> None:
        backing = self.make_map()
        self._store(backing, ["a"])
        backing.close()
        backing.close()

    def test_it_may_be_closed_unused(self) -> None:
        self.make_map().close()

    def test_persist_may_be_called_at_any_time(self, backing: IBackingMap) -> None:
        backing.flush()
        self._store(backing, ["a"])
        backing.flush()
        backing.flush()
        assert backing.multiGet([key_of(backing, "a")]) == [value_of(backing, 0)]

    def test_the_incarnation_stays(self, backing: IBackingMap) -> None:
        before = backing.incarnation()
        self._store(backing, ["a"])
        assert backing.incarnation() == before, (
            "incarnation() changes only when the server restarts or another takes over"
        )

    def _store(self, backing: IBackingMap, names: list[str]) -> None:
        keys = [key_of(backing, name) for name in names]
        backing.multiPut(keys, [value_of(backing, number) for number in range(len(names))])


class ControlChecks(Checks):
    """``getControl`` and ``putControl``."""

    def test_no_control_record_at_first(self, backing: IBackingMap) -> None:
        assert backing.getControl() is None, "getControl() of an empty store returns None"

    def test_a_control_record_is_created(self, backing: IBackingMap) -> None:
        assert backing.putControl(b"one", None) is True, (
            "putControl(new, None) stores the first record and returns True"
        )
        assert backing.getControl() == b"one", "getControl() returns the record's very bytes"

    def test_a_control_record_is_replaced(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        assert backing.putControl(b"two", b"one") is True, (
            "putControl replaces a record that is as expected, and returns True"
        )
        assert backing.getControl() == b"two"

    def test_another_control_record_is_left(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        assert backing.putControl(b"three", b"two") is False, (
            "putControl returns False where the record is not the expected one"
        )
        assert backing.getControl() == b"one", "a refused putControl changes nothing"

    def test_a_second_first_record_is_refused(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        assert backing.putControl(b"two", None) is False, (
            "expected=None means that there must be no record yet"
        )
        assert backing.getControl() == b"one"

    def test_an_absent_record_is_not_any_record(self, backing: IBackingMap) -> None:
        assert backing.putControl(b"two", b"one") is False, (
            "an absent record is not the expected one: return False"
        )
        assert backing.getControl() is None

    def test_a_record_may_be_put_again(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        assert backing.putControl(b"one", b"one") is True

    def test_a_long_record_comes_back(self, backing: IBackingMap) -> None:
        retried = dict.fromkeys(range(1, 20000, 3), 1)
        long = ControlRecord("caf\u00e9", Token(20_000, 3), 19_999, retried).encode()
        assert backing.putControl(long, None)
        assert backing.getControl() == long, "a control record has any length, and exact bytes"
        assert backing.putControl(b"short", long)

    def test_another_map_finds_the_record(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        other = self.reopen(backing)
        found = other.getControl()
        other.close()
        assert found == b"one", "all maps of a store share its control record"

    def test_another_map_replaces_the_record(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        assert backing.getControl() == b"one"
        other = self.reopen(backing)
        assert other.putControl(b"two", b"one")
        other.close()
        assert backing.putControl(b"three", b"one") is False, (
            "putControl compares with what the store holds now, not with what was read once"
        )
        assert backing.getControl() == b"two", "getControl() asks the store each time"

    def test_the_record_is_no_entry(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        keys = [key_of(backing, *fields) for fields in ODD_KEYS]
        assert backing.multiGet(keys) == [None] * len(keys), (
            "no key of a user may reach the control record"
        )

    def test_entries_leave_the_record_alone(self, backing: IBackingMap) -> None:
        backing.putControl(b"one", None)
        keys = [key_of(backing, *fields) for fields in ODD_KEYS]
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
