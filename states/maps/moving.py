"""Another state takes the place of one: its control record says under which prefix that one is.

The other state is of another log, which has built it anew beside the old one, in the same store.
The change of one record is all: it is the pointer that readers follow, and the fence of the old
state, whose next write, begin, ready or announcement finds another record than its own. Readers
ask for the record anyway, before each query; whoever finds that a state has moved opens the other
place, stays there, and begins the query anew.

Several states of one log move together. The records of all but the first say first that they move
*once* the first has; nothing updates them from then on, and readers find the old ones. Then the
first record is changed, which decides for all. A database with readers of its own changes all of
them in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial

from trident.states.backing_map import Ability, abilities
from trident.states.control import Move
from trident.states.errors import NoStateError, StateUnavailableError, UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import STAND_ALONE, StoredMap

_TRIES = 1000


def swap_states(states: Sequence[tuple[MapStateFactory, str]]) -> None:
    """Have other states take the places of some, all at once.

    What updated the states before ends with an error. Their entries stay: ``state drop`` removes
    them. Killed at any point, it leaves all old states in their places, or all new ones; called
    again it goes on, and where all has been done it does nothing.

    Parameters
    ----------
    states : sequence of (MapStateFactory, str)
        The factory of each state, by the prefix that its topology gives it, and the prefix of the
        one that takes its place.

    Raises
    ------
    UsageError
        For states of several stores or logs, whose records can't be changed together, and for one
        that has committed no batch yet.
    NoStateError
        When one of them is not there.
    MovedStateError
        When something else has taken the place of one that is to take a place.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> old = MemoryMapState.Factory("words")
    >>> for factory, number in (old, 1), (old.at("count_2"), 5):
    ...     counts = factory.makeState()
    ...     counts.beginCommit(1)
    ...     counts.multiPut([("dog",)], [number])
    ...     counts.commit(1)
    >>> reader = old.makeState()
    >>> reader.multiGet([("dog",)])
    [1]
    >>> swap_states([(old, "count_2")])
    >>> reader.multiGet([("dog",)])
    [5]
    """
    with ExitStack() as opened:

        def made(factory: MapStateFactory) -> StoredMap:
            return opened.enter_context(closing(factory.makeMap()))

        olds = [made(factory) for factory, _ in states]
        for old in olds:
            old.locate()
        news = [made(factory.at(prefix)) for factory, prefix in states]
        _check_news(news)
        pairs = zip(olds, news, strict=True)
        left = [(old, new) for old, new in pairs if _prefix(old) != _prefix(new)]
        if left:
            _check_olds([factory for factory, _ in states], left)
            _retry(partial(_move_all, left), left[0][0])


def _move_all(pairs: Sequence[tuple[StoredMap, StoredMap]]) -> bool:
    """Change all records; return False where one has changed meanwhile."""
    first = pairs[0][0]
    if Ability.MOVE in abilities(first.backing):
        moves = []
        for old, new in pairs:
            before, after = old.control.before_move(Move(_prefix(new)))
            moves.append((_prefix(old), after, before, _prefix(new)))
        return first.backing.moveControls(moves)
    for old, new in pairs[1:]:
        if not _moved(old, Move(_prefix(new), once=_prefix(first))):
            return False
    return all(_moved(old, Move(_prefix(new))) for old, new in pairs)


def _moved(state: StoredMap, move: Move) -> bool:
    if not state.control.move(move):
        return False
    state.backing.flush()
    return True


def _prefix(state: StoredMap) -> str:
    return state.backing.prefix or ""


def _check_news(news: Sequence[StoredMap]) -> None:
    logs = set()
    for new in news:
        record = new.control.expect()
        if record is None or not record.committed:
            advice = "Build it anew first: python -m trident rebuild."
            raise UsageError(f"{new.control.place} has committed no batch", "", (), advice)
        logs.add(record.log_id)
    if len(logs) > 1:
        what = "the states that are to take the places of others belong to several logs:"
        advice = "Build all states of a group anew by one run."
        raise UsageError(what, ", ".join(sorted(logs)), (), advice)


def _check_olds(
    factories: Sequence[MapStateFactory], left: Sequence[tuple[StoredMap, StoredMap]]
) -> None:
    if len({factory.identity[:2] for factory in factories}) > 1:
        advice = "Keep all states of a group in one store, or one group for each."
        raise UsageError("states of several stores can't move at once", "", (), advice)
    for old, new in left:
        found, record = old.control.ask()(), new.control.expect()
        if found is None:
            raise NoStateError(old.backing.where, old.backing.prefix)
        assert record is not None
        if found.log_id == record.log_id != STAND_ALONE:
            what = f"{new.control.place} is of the same log as what it is to take the place of:"
            raise UsageError(what, record.log_id)


def _retry(change: Callable[[], bool], state: StoredMap) -> None:
    """Change records, which a run that is alive keeps changing as well."""
    for _ in range(_TRIES):
        if change():
            return
    raise StateUnavailableError(
        state.control.place, f"control records changed {_TRIES} times meanwhile", "Try again."
    )
