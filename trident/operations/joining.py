"""How streams are joined: which of them may be missing, and what comes out."""

from __future__ import annotations

from enum import Enum

from trident.operations.interfaces import Filter
from trident.states.keys import encode_key
from trident.tuples import TridentTuple


class JoinType(Enum):
    """Whether a joined stream may have no tuple with a key.

    Attributes
    ----------
    INNER
        A key that this stream hasn't got makes no tuple.
    OUTER
        Where this stream hasn't got the key its fields are null.

    Examples
    --------
    >>> JoinType.mixed(JoinType.INNER, JoinType.OUTER)  # what SQL calls a left outer join
    (<JoinType.INNER: 'inner'>, <JoinType.OUTER: 'outer'>)
    """

    INNER = "inner"
    OUTER = "outer"

    @staticmethod
    def mixed(*types: JoinType) -> tuple[JoinType, ...]:
        """The type of each stream, in order."""
        return types


class JoinOutFieldsMode(Enum):
    """Which fields come out of a join.

    Attributes
    ----------
    COMPACT
        The key once, and then of each stream the fields that aren't of its key.
    PRESERVE
        All fields of each stream, those of its key too.
    """

    COMPACT = "compact"
    PRESERVE = "preserve"


class KeyFits(Filter):
    """Keeps all tuples, and raises for a key that has no encoded form, so that none equals it."""

    positional = True

    def isKeep(self, tuple: TridentTuple) -> bool:
        encode_key(tuple)
        return True
