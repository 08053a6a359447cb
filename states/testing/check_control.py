"""Checks of the control record: found, replaced only where it is as expected."""

from __future__ import annotations

from threading import Barrier, Thread

from trident.states.backing_map import Ability, IBackingMap
from trident.states.control import ControlRecord
from trident.states.testing.checks import ODD_KEYS, Checks, key_of, needs, record, value_of
from trident.states.values import Token


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
