"""A model of a map: the map and the model have to answer alike, whatever is done to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any

from trident.states.backing_map import Ability, IBackingMap
from trident.states.control import ControlRecord
from trident.states.testing.checks import Checks, begun, key_of, needs, record, value_of

Name = tuple[str, ...]
NAMES: Sequence[Name] = (("a",), ("b",), ("a", "b"), ("c",))
AT_VERSIONS: Sequence[Name] = (("x",), ("y",))
"""Keys that are only written with a version."""
RECORDS = (
    record(5, 1),
    record(5, 0),
    record(5, 2),
    record(4, 1),
    record(6, 1),
    record(5, 1, "other"),
    record(5, 1, t3=1),
    record(5, 1).announced(),
)
"""An attempt, an earlier and a later one of its batch, attempts of other batches, one of another
log, one with other retried batches, and the announced record."""
_VERSIONS = [2**62 | txid << 12 | attempt for txid, attempt in ((5, 0), (5, 1), (5, 4095), (6, 0))]
_VERSIONS += [2**62 | txid << 12 for txid in (2**31, 2**31 + 1)]
_SHOWN = 12
"""How many of the last calls a failure shows."""


class Model:
    """Entries by name and a control record, to compare with a map after each call.

    `choose` decides on the calls: of the two methods, by one map or two over the same entries. Each
    written value is a new one, known by its number.
    """

    def __init__(self, checks: Checks, choose: Random) -> None:
        self.checks = checks
        self.choose = choose
        self.backing = checks.make_map()
        self.other: IBackingMap | None = None
        self.held: dict[Name, int] = {}
        self.record: ControlRecord | None = None
        self.calls: list[str] = []
        self._numbers = count(1)
        self._incarnation = self.backing.incarnation()

    def play(self, steps: int) -> None:
        """Make `steps` calls and compare after each; a failure has the last calls as a note."""
        own = [vars(kind)[name] for kind in type(self).__mro__ for name in vars(kind)]
        rules = [each for each in own if hasattr(each, "needs")]
        able = [each for each in rules if each.needs <= self.checks.abilities]
        try:
            for _ in range(steps):
                self.choose.choice(able)(self)
                self.look()
        except Exception as error:
            error.add_note("\n".join(["The last calls:", *self.calls[-_SHOWN:]]))
            raise
        finally:
            for opened in (self.backing, self.other):
                if opened is not None:
                    opened.close()

    def look(self) -> None:
        names = [*NAMES, *AT_VERSIONS]
        assert list(self.call("multiGet", self.keys(names))) == self.values(names), (
            "a write stores what it is given and nothing else, for all maps over the same entries, "
            f"and of two versions the higher one shows, whichever came last; the keys are {names}"
        )
        assert self.backing.incarnation() == self._incarnation, (
            "incarnation() changes only when the server restarts or another takes over"
        )

    @needs()
    def get(self) -> None:
        keys = self.keys(names := self.choose.choices(NAMES, k=self.choose.randrange(6)))
        backing, form = self._map(), self.choose.choice((list, tuple))
        wait, given = backing.ask(form(keys)), form(keys)
        if self.choose.random() < 0.5:  # an unused question must not take the others' answers
            backing.ask(self.keys(NAMES))
            backing.askControl()
        found: Any = backing.multiGet(given)
        assert found == self.values(names), (
            "multiGet answers each key at its place, also one that is repeated, with the value "
            "that multiPut stored last, or None"
        )
        assert wait() == found, "ask returns what waits for the values of multiGet"
        assert given == form(keys), "the lists belong to the caller: do not change them"
        assert isinstance(found, list), f"multiGet returns a list, not {type(found).__name__}"
        found.clear()  # the caller may: the next answer is another list

    @needs()
    def put(self) -> None:
        self.write("multiPut", self.some(NAMES))

    @needs()
    def flush(self) -> None:
        self.call("flush")

    @needs()
    def look_from_another_process(self) -> None:
        other = self.checks.reopen(self.backing)
        found = other.multiGet(self.keys(NAMES))
        other.close()
        assert found == self.values(NAMES), (
            "what multiPut stored is there for another process as soon as it returns"
        )

    def call(self, method: str, *given: Any) -> Any:
        """Make a call of one of the maps, and note it."""
        answer = getattr(self._map(), method)(*given)
        shown = ", ".join(f"{each!r:.60}" for each in given)
        self.calls.append(f"{method}({shown}) -> {answer!r:.60}")
        return answer

    def write(self, method: str, names: Sequence[Name], *more: Any) -> Any:
        """Write new values, also to the model unless the answer is False."""
        new = {name: next(self._numbers) for name in names}
        keys, values = self.keys(names), [value_of(self.backing, each) for each in new.values()]
        form = self.choose.choice((list, tuple))
        given: Any = form(keys), form(values)
        answer = self.call(method, *given, *more)
        assert given == (form(keys), form(values)), "the lists belong to the caller"
        if form is list:  # the caller may use its lists again
            given[0].clear()
            given[1].clear()
        if answer is not False:
            self.held |= new
        return answer

    def some(self, names: Sequence[Name]) -> Sequence[Name]:
        return self.choose.sample(names, self.choose.randrange(len(names) + 1))

    def keys(self, names: Sequence[Name]) -> list[Any]:
        return [key_of(self.backing, *name) for name in names]

    def values(self, names: Sequence[Name]) -> list[Any]:
        numbers = map(self.held.get, names)
        return [None if each is None else value_of(self.backing, each) for each in numbers]

    def _map(self) -> IBackingMap:
        """Return the map, or another one over the same entries, which stays open."""
        if not self.checks.shared or self.choose.random() < 0.5:
            return self.backing
        self.other = self.other or self.checks.reopen(self.backing)
        return self.other


class AbleModel(Model):
    """Also calls for the control record, and for all abilities of the map."""

    def look(self) -> None:
        super().look()
        wait, expected = self.backing.askControl(), self.record and self.record.encode()
        assert self.backing.getControl() == expected, (
            "getControl() asks the store each time, and returns the record's very bytes, None "
            "where there is none; a refused call leaves it alone"
        )
        assert wait() == expected, "askControl returns what waits for the record of getControl"

    @needs()
    def put_control(self) -> None:
        new, expected = self.choose.choice(RECORDS), self._expected([None, self.record])
        replaced = self.call("putControl", new.encode(), expected and expected.encode())
        assert replaced is (expected == self.record), (
            "putControl replaces the record and returns True where it is the expected one, None "
            "where there has to be none yet; else it returns False"
        )
        self.record = new if replaced else self.record

    @needs(Ability.TOGETHER)
    def put_controls(self) -> None:
        new, expected = self.choose.choice(RECORDS), self._expected()
        change = self.backing.prefix, new.encode(), expected.encode()
        assert self.call("putControls", [change]) is (expected == self.record), (
            "putControls replaces records and returns True where each is the expected one"
        )
        assert self.backing.catalog is not None, "states of one catalog are changed together"
        self.record = new if expected == self.record else self.record

    @needs(Ability.FENCED)
    def put_fenced(self) -> None:
        fence, names = self._expected(), self.some(NAMES)
        done = self.write("multiPutFenced", names, fence.encode())
        self._check_fenced(done, fence, names)

    @needs(Ability.FENCED, Ability.REMOVE)
    def remove_fenced(self) -> None:
        fence, names = self._expected(), self.some(NAMES)
        done = self.call("multiRemoveFenced", self.keys(names), fence.encode())
        self._check_fenced(done, fence, names)
        for name in names if done else ():
            self.held.pop(name, None)

    def _check_fenced(self, done: Any, fence: ControlRecord, names: Sequence[Name]) -> None:
        # A store of several shards asks none of them for no keys.
        assert done is (fence == self.record) or (done is True and not names), (
            "a fenced call does all that it says and returns True where the control record is the "
            "fence, also of no keys; else it returns False, with nothing written"
        )

    @needs(Ability.ENTRY)
    def put_versioned(self) -> None:
        names, before = self.some(NAMES), dict(self.held)
        found = self.call("multiGetVersioned", self.keys(names))
        assert [value for value, _ in found] == self.values(names), (
            "multiGetVersioned finds what multiGet finds"
        )
        self.put()
        expected = [before.get(name) == self.held.get(name) for name in names]
        for fits in (expected, [False] * len(names)):
            new = {name: next(self._numbers) for name in names}
            values = [value_of(self.backing, number) for number in new.values()]
            versions = [seen for _, seen in found]
            assert self.call("multiPutVersioned", self.keys(names), values, versions) == fits, (
                "multiPutVersioned stores each value whose entry was not written since it was "
                "read, also not by the same map, or was absent and is; each by itself"
            )
            self.held |= {name: new[name] for name, done in zip(names, fits, strict=True) if done}

    @needs(Ability.VERSIONED)
    def put_at(self) -> None:
        index, names = self.choose.randrange(len(_VERSIONS)), self.some(AT_VERSIONS)
        values = [value_of(self.backing, index)] * len(names)  # a version has one, as an attempt
        self.call("multiPutAt", self.keys(names), values, _VERSIONS[index])
        self.held |= {name: max(index, self.held.get(name, 0)) for name in names}

    @needs(Ability.LIST)
    def list_entries(self) -> None:
        expected = zip(self.keys([*self.held]), self.values([*self.held]), strict=True)
        assert sorted(self.call("entries")) == sorted(expected), (
            "entries() lists every key and its value once, without the control record"
        )

    @needs(Ability.LOOK)
    def look_for_an_occupant(self) -> None:
        if self.record is not None and self.held:
            return
        found = self.call("occupant")
        assert (found is not None) == bool(self.held), (
            "occupant() names an entry where there is one, and passes over the control record"
        )
        assert not found or any(name[0] in found for name in self.held), (
            "occupant() names the entry by its key"
        )

    @needs(Ability.DROP)
    def drop(self) -> None:
        fence = self._expected()
        done = self.backing.drop(fence.encode())
        self._check_fenced(done, fence, NAMES)
        if done:
            assert self.backing.getControl() is None, "the record of what was dropped is gone"
            begun(self.backing, fence)
            self.held.clear()
            if self.other is not None:
                self.other.close()
                self.other = None

    def _expected(self, others: Sequence[Any] = ()) -> Any:
        """Return a record for a call to expect, which is there about half of the time."""
        own = [*others] or [self.record or RECORDS[0]]
        return self.choose.choice(own if self.choose.random() < 0.6 else RECORDS)


def play(model: Callable[[Checks, Random], Model], checks: Checks, runs: int) -> None:
    """Play scripts on a map and its model, each over an empty store; they are always the same."""
    for seed in range(runs):
        model(checks, Random(seed)).play(20)
