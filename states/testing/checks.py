"""The base of all checks of a backing map, with keys, values and records for them."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from random import Random
from typing import Any, ClassVar, TypeVar

import pytest

from trident.states.backing_map import Ability, Codec, IBackingMap
from trident.states.control import Check, Control, ControlRecord
from trident.states.control_check import Claim, check_record
from trident.states.errors import SerializationError
from trident.states.keys import encode_key
from trident.states.table.table import LayeredMap
from trident.states.values import OpaqueValue, StateType, Token, TransactionalValue

F = TypeVar("F", bound=Callable[..., None])

ODD_KEYS: list[tuple[Any, ...]] = [
    ("",),
    (" ",),
    ("key ",),
    ("Key",),
    ("key",),
    ("k\u0000",),
    ("\u0000",),
    ("\u0000[1]",),
    ("line\nbreak",),
    ("'; --",),
    ("%s{}\\",),
    ("caf\u00e9",),
    ("cafe\u0301",),
    ("\U0001f44d\U0001f3fd",),
    ("\U0010ffff",),
    ("k" * 10_000,),
    (Random(1).randbytes(5_000).hex(),),
    (None,),
    (1,),
    (True,),
    (1.0,),
    ("1",),
    (0,),
    (False,),
    (-0.0,),
    ("a", "b"),
    ("ab",),
    ("a", None, 2**63 - 1, -(2**63)),
    (),
]
"""Keys as users write them; no two are the same key."""

ODD_VALUES: list[Any] = [
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**53 + 1,
    0.1,
    -1.5e300,
    True,
    False,
    "",
    "0",
    "caf\u00e9 \U0001f44d \u0000",
    "v" * 100_000,
    [],
    [1, [2, None], "3"],
    {"a": {"b": [1.5]}},
]
"""Values of a state; each has to come back equal and of the same type."""

ODD_BYTES = [b"", b"\0", b"\xff\xfe", b"null", b"\r\n", bytes(range(256)), b"v" * 1_000_000]
"""Values of a map of bytes."""


def needs(*abilities: Ability) -> Callable[[F], F]:
    """Mark a check for maps with all of these abilities."""

    def mark(check: F) -> F:
        check.needs = frozenset(abilities)  # type: ignore[attr-defined]
        return check

    return mark


def only_if(attribute: str) -> Callable[[F], F]:
    """Mark a check for maps whose tests set `attribute`."""

    def mark(check: F) -> F:
        check.only_if = attribute  # type: ignore[attr-defined]
        return check

    return mark


def following(control: Control, own: ControlRecord, listed: Token | None) -> Check:
    """Return the check of a log that has committed `listed` at a state, and now begins `own`."""
    claim = Claim(listed)
    return partial(check_record, own=own, claim=claim, name=control.name, where=control.where)


class Checks(ABC):
    """The facts about a map that its author declares; see :class:`BackingMapConformance`."""

    abilities: ClassVar[frozenset[Ability]] = frozenset()
    shared: ClassVar[bool] = True
    pickles: ClassVar[bool] = True
    values: ClassVar[type | None] = None
    runs: ClassVar[int] = 12

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in dir(cls):
            if name.startswith("test_"):
                defined = [vars(base).get(name) for base in cls.__mro__]
                check = next(filter(None, defined))
                # pytest collects no check of a name that is None.
                setattr(cls, name, check if cls._applies(check) else None)

    @classmethod
    def _applies(cls, check: object) -> bool:
        if cls.make_map is Checks.make_map:
            return True
        needed: frozenset[Ability] = getattr(check, "needs", frozenset())
        return needed <= cls.abilities and bool(getattr(cls, getattr(check, "only_if", "make_map")))

    @abstractmethod
    def make_map(self) -> IBackingMap:
        """Return a map over a new, empty store."""

    def make_map_of(self, kind: StateType) -> IBackingMap:
        """Return such a map for values of `kind`, if the store has to know the kind."""
        return self.make_map()

    def layers(self, backing: IBackingMap) -> IBackingMap | LayeredMap:
        """Return the map for states: the map itself, or layers over it."""
        return backing

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        """Return another map over the same entries, as another process would open it."""
        reached: IBackingMap = pickle.loads(pickle.dumps(backing))
        return reached

    def keeps(self, *values: Any) -> bool:
        """Return whether the map keeps these values, as its tests declare."""
        return self.values is None or {*map(type, values)} <= {self.values, type(None)}

    def kept(self, *values: Any) -> AbstractContextManager[Any]:
        """Return a context that expects an error if the map doesn't keep one of `values`."""
        return nullcontext() if self.keeps(*values) else pytest.raises(SerializationError)

    @pytest.fixture
    def backing(self) -> Iterator[IBackingMap]:
        made = self.make_map()
        yield made
        made.close()


def key_of(backing: IBackingMap, *fields: Any) -> Any:
    return encode_key(fields) if backing.codec else fields


def value_of(backing: IBackingMap, number: int, kind: StateType = StateType.OPAQUE) -> Any:
    """Return a value made of `number`, in the form of the map's values."""
    if backing.codec is Codec.BYTES:
        return b"value %d" % number
    match kind:
        case StateType.OPAQUE:
            return OpaqueValue(7, 0, number, number - 1)
        case StateType.TRANSACTIONAL:
            return TransactionalValue(7, number)
        case StateType.NON_TRANSACTIONAL:
            return number


def put_and_get(backing: IBackingMap, keys: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    """Store values, and return those that the map then has."""
    backing.multiPut(keys, values)
    return backing.multiGet(keys)


def in_bulk(call: Callable[..., Sequence[Any]], *sequences: Sequence[Any]) -> list[Any]:
    """Return the answers of one call for all; if it fails, those of a call for each."""
    try:
        return list(call(*sequences))
    except Exception as error:
        alone = [_alone(call, *each) for each in zip(*sequences, strict=True)]
        if any(isinstance(answer, Exception) for answer in alone):
            return alone
        raise AssertionError("each of these works alone, and all at once do not") from error


def _alone(call: Callable[..., Sequence[Any]], *arguments: Any) -> Any:
    try:
        [answer] = call(*([each] for each in arguments))
    except Exception as error:
        return error
    return answer


def wrong_answers(
    what: str, names: Sequence[Any], expected: Sequence[Any], found: Sequence[Any]
) -> str:
    """Return a line for each of `names` whose answer differs in its value or type."""
    if len(found) != len(expected):
        return f"{len(expected)} keys were asked for, and {len(found)} answers came"
    lines = []
    for name, value, answer in zip(names, expected, found, strict=True):
        if answer != value or repr(answer) != repr(value):
            line = f"{what} {name!a:.60}: {value!a:.60} became {answer!a:.60}"
            others = (name for name, each in zip(names, expected, strict=True) if each == answer)
            other = next(others, name)
            lines.append(line if other == name else f"{line}, that of {other!a:.60}")
    return "\n".join(lines)


def record(txid: int, attempt: int = 0, log_id: str = "log", **retried: int) -> ControlRecord:
    """Return the control record of an attempt; retried batches are written ``t3=1``."""
    known = {int(name[1:]): attempt for name, attempt in retried.items()}
    return ControlRecord(log_id, Token(txid, attempt), txid - 1, known)


def begun(backing: IBackingMap, of: ControlRecord) -> bytes:
    """Replace the map's record by `of`, and return its fence."""
    fence = of.encode()
    assert backing.putControl(fence, backing.getControl()), (
        "putControl(new, expected) must replace the record where it still is what getControl() "
        "returned a moment ago, and then return True"
    )
    return fence
