"""How far sources are behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the sources of a group are behind.

    `tuples` counts those that wait, or the records that they are made of, in all streams that know
    it; `detail` says it for each. The records `held_back` can't be read before open transactions
    end.

    Examples
    --------
    >>> Lag.of({"lines": 12, "words": None}, {"lines": 3})
    Lag(tuples=12, detail='lines: 12, words: not known', held_back=3)
    """

    tuples: int | None
    detail: str
    held_back: int | None = None

    @classmethod
    def of(
        cls,
        streams: Mapping[str, int | None],
        held_back: Mapping[str, int | None] = MappingProxyType({}),
    ) -> Lag | None:
        """Return the lag of some streams; None if none knows it."""
        known = [waiting for waiting in streams.values() if waiting is not None]
        if not known:
            return None
        held = [records for records in held_back.values() if records is not None]
        detail = ", ".join(
            f"{name}: {'not known' if each is None else each}" for name, each in streams.items()
        )
        return cls(sum(known), detail, sum(held) if held else None)
