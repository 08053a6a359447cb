"""What each state has to hold after each word of the record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import chain, pairwise
from operator import add
from typing import Any, Self

Key = tuple[str, tuple[Any, ...] | None]
"""A state's name and a key in it; None for the single value of an aggregate without groups."""

Reading = Mapping[Key, Any]
"""What was read of the states; None, or nothing, where there is no value."""


@dataclass(frozen=True)
class Findings:
    """What reads have found.

    A read is `torn` if it is not the result of some first words, or of fewer than an earlier one.
    `lost` and `duplicated` are the sums by which numbers of the last read are too small and too
    large; a missing number is too small by all of it. `differing` counts wrong values of other
    types.
    """

    reads: int = 0
    torn: int = 0
    lost: int = 0
    duplicated: int = 0
    differing: int = 0
    example: str = ""

    def __add__(self, other: Findings) -> Findings:
        summed = Findings(*map(add, astuple(self), astuple(other)))
        return replace(summed, example=self.example or other.example)

    @property
    def miscounted(self) -> bool:
        """Whether the states held anything but the truth."""
        return bool(self.lost or self.duplicated or self.differing)


class Truth:
    """What states hold after each of the record's words, as a topology without a fault makes it.

    `changes` has for each word the keys that it changes, with their new values; None removes a key.
    """

    def __init__(self, changes: Iterable[Reading]) -> None:
        self.whole: dict[Key, Any] = {}
        # For each key and value: the numbers of words after which the key has that value, as the
        # bits of an integer.
        self._holding: dict[tuple[Key, Any], int] = {}
        since: dict[Key, int] = {}
        words = 0
        for words, changed in enumerate(changes, 1):
            for key, value in changed.items():
                self._hold(key, since.get(key, 0), words)
                since[key], self.whole[key] = words, value
        for key, first in since.items():
            self._hold(key, first, words + 1)
        self._all = (1 << words + 1) - 1

    @classmethod
    def of_readings(cls, readings: Iterable[Reading]) -> Self:
        """Return the truth of what was read after the first word, after the second, and so on."""
        steps = pairwise(chain([{}], readings))
        return cls({**dict.fromkeys(before), **reading} for before, reading in steps)

    def _hold(self, key: Key, first: int, end: int) -> None:
        """Note that a key has its value after `first` words, and up to before `end`."""
        held = (key, _comparable(self.whole.get(key)))
        self._holding[held] = self._holding.get(held, 0) | (1 << end) - (1 << first)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self.whole)

    def words_in(self, reading: Reading) -> int | None:
        """Return how many of the first words give this reading; None if no number does.

        If several numbers do, it is the largest.
        """
        possible = self._all
        for key in self.whole:
            possible &= self._holding.get((key, _comparable(reading.get(key))), 0)
        unknown = any(reading[key] is not None for key in reading.keys() - self.whole.keys())
        return possible.bit_length() - 1 if possible and not unknown else None

    def differences(self, reading: Reading) -> Findings:
        """Compare a reading with the result of all words."""
        lost = duplicated = differing = 0
        example = ""
        for key in dict.fromkeys([*self.keys, *reading]):
            expected, found = self.whole.get(key), reading.get(key)
            if _comparable(found) == _comparable(expected):
                continue
            name, inner = key
            label = name if inner is None else f"{name}: {inner}"
            example = example or f"{label} is {found}, and should be {expected}"
            if {type(expected), type(found)} <= {int, type(None)}:
                more = (found or 0) - (expected or 0)
                lost, duplicated = lost + max(-more, 0), duplicated + max(more, 0)
            else:
                differing += 1
        return Findings(0, 0, lost, duplicated, differing, example)


def _comparable(value: Any) -> Any:
    """Return what a value is compared by: of what JSON may have turned into a list, its text."""
    return value if isinstance(value, int | str | None) else json.dumps(value, default=repr)
