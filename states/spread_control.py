"""One state's control record in a store that is made of parts, each with a record of its own.

A part (a node, or a partition that can move between nodes) can fail over, restart or lose its data
by itself, and a write is compared with the record of its own part. So every part has the record;
what is read of all of them together is the *least*, and part 0, written last when a state is
created, says whether the state exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError
from trident.states.values import Token

_RESTORE = (
    "Restore the store from a backup that is whole, or begin anew with an empty store and a new "
    "checkpoint."
)


def least_control(found: Sequence[bytes | None], state: str) -> bytes | None:
    r"""Return the record that all parts have reached, None where the state was never begun.

    Parameters
    ----------
    found : sequence of bytes or None
        What each part holds.
    state : str
        How errors name the state.

    Raises
    ------
    CorruptStateError
        When part 0 has a record and another part has none: that one lost what it held.

    Examples
    --------
    >>> from trident.states.control import ControlRecord
    >>> begun = ControlRecord("log", Token(5, 0), committed=4)
    >>> parts = [begun.announced().encode(), begun.encode()]
    >>> least_control(parts, "counts") == begun.encode()
    True
    >>> least_control([None, begun.encode()], "counts") is None
    True
    """
    if found[0] is None:
        return None
    present = [record for record in found if record is not None]
    if len(present) < len(found):
        lost = [str(part) for part, record in enumerate(found) if record is None]
        raise CorruptStateError(
            f"the control record of {state}",
            f"of its {len(found)} parts these have none: {', '.join(lost)}; they lost what they "
            "held",
            _RESTORE,
        )
    return present[0] if len(set(present)) == 1 else min(present, key=_progress)


def may_spread(
    found: Sequence[bytes | None], new: bytes, expected: bytes | None, state: str
) -> bool:
    """Return whether `new` may take the place of what all parts hold.

    Parameters
    ----------
    found : sequence of bytes or None
        What each part holds.
    new : bytes
        The record to be put.
    expected : bytes or None
        What the least of them has to be.
    state : str
        How errors name the state.

    Raises
    ------
    CorruptStateError
        When a state that doesn't exist any more has left records of another log, or a part
        lost its record.

    Notes
    -----
    Where a driver died between two parts they differ; the next one brings all to `new`. A part
    that is further than `new` was begun by a later attempt, which a late one must not undo.
    Whoever puts `new` compares each part with what was found there and writes part 0 last, so
    that a state which was begun only in part counts as never begun.
    """
    if least_control(found, state) != expected:
        return False
    present = {record for record in found if record is not None}
    if not present <= {new, expected}:
        own = ControlRecord.decode(new)
        others = [ControlRecord.decode(record) for record in present]
        strangers = [other for other in others if other.log_id != own.log_id]
        if expected is None and not all(other.is_unused for other in strangers):
            raise CorruptStateError(
                f"the control record of {state}",
                "its first part has none, and others belong to another checkpoint; the store was "
                "emptied in part",
                "Empty it as a whole, give this state another prefix, or restore the store.",
            )
        return not any(_progress(record) > _progress(new) for record in present - {new})
    return True


def _progress(record: bytes) -> tuple[Token, int, bool]:
    read = ControlRecord.decode(record)
    return read.token, read.committed, bool(read.ready)
