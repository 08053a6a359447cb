"""How far sources are behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the sources of a group are behind.

    Parameters
    ----------
    tuples : int or None
        How many tuples, or records of which tuples are made, wait in all streams of which that is
        known; None where it is of none.
    detail : str
        The same for each stream.

    Examples
    --------
    >>> Lag.of({"lines": 12, "words": None})
    Lag(tuples=12, detail='lines: 12, words: not known')
    """

    tuples: int | None
    detail: str

    @classmethod
    def of(cls, streams: Mapping[str, int | None]) -> Lag | None:
        """Return the lag of some streams; None where it is known of none."""
        known = [waiting for waiting in streams.values() if waiting is not None]
        if not known:
            return None
        told = {name: "not known" if each is None else each for name, each in streams.items()}
        return cls(sum(known), ", ".join(f"{name}: {each}" for name, each in told.items()))
