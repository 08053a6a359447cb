"""Another state takes the place of one: its control record says under which prefix that one is.

The other state is of another log, which has built it anew beside the old one, in the same store.
The change of one record is all: it is the pointer that readers follow, and the fence of the old
state, whose next write, begin, ready or announcement finds another record than its own. Readers
ask for the record anyway, before each query; whoever finds that a state has moved opens the other
place, stays there, and begins the query anew.

Several states of one log move together. The records of all but the first say first that they move
*once* the first has, and where to; nothing updates them from then on, and readers find the old
ones. Then the first record is changed, which decides for all. A database with readers of its own
changes all of them in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import combinations

from trident.states.backing_map import Ability, abilities
from trident.states.control import Deciding, Move
from trident.states.errors import NoStateError, StateError, StateUnavailableError, UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import STAND_ALONE, StoredMap
from trident.states.table.build import layers

_TRIES = 1000


def swap_states(
    states: Sequence[tuple[MapStateFactory, str]], places: Sequence[str] | None = None
) -> None:
    """Have other states take the places of some, all at once.

    What updated the states before ends with an error. Their entries stay: ``state drop`` removes
    them. Killed at any point, it leaves all old states in their places, or all new ones; called
    again it goes on, and where all has been done it does nothing.

    Parameters
    ----------
    states : sequence of (MapStateFactory, str)
        The factory of each state, by the prefix that its topology gives it, and the prefix of the
        one that takes its place.
    places : sequence of str, optional
        Where each state was when the other one began to be built, as :func:`check_places` said.

    Raises
    ------
    UsageError
        For states of several stores or logs, or in several layouts, whose records can't be changed
        together, for two that would have one place, for one that has committed no batch yet or is
        in the place of another state already, and where a state has left its place in `places`.
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
    with _located([factory for factory, _ in states]) as olds, ExitStack() as opened:
        news = [
            opened.enter_context(closing(factory.at(prefix).makeMap()))
            for factory, prefix in states
        ]
        pairs = list(zip(olds, news, strict=True))
        own = [
            {factory.identity[2], *(_name(factory, _prefix(state)) for state in pair)}
            for (factory, _), pair in zip(states, pairs, strict=True)
        ]
        _check_apart(own)
        left: list[tuple[StoredMap, StoredMap]] = []
        befores = places or map(_prefix, olds)
        for (factory, _), (old, new), before in zip(states, pairs, befores, strict=True):
            if _name(factory, _prefix(old)) != _name(factory, _prefix(new)):
                _check_in_place(_prefix(old), _prefix(new), before)
                left.append((old, new))
        log_id = _log_of(news)
        _check_one_log([old for old, _ in left])
        for old, new in left:
            found = old.control.ask()()
            if found is not None and found.log_id == log_id != STAND_ALONE:
                what = f"{new.control.place} is of the same log as what it is to take the place of:"
                raise UsageError(what, log_id)
        if left:
            _check_untaken(states[0][0], left, set().union(*own))
            _retry(partial(_move_all, left), left[0][0])


def check_places(factories: Sequence[MapStateFactory]) -> list[str]:
    """Raise what :func:`swap_states` would raise of old states, before new ones are built.

    Returns the prefixes under which they are now.
    """
    with _located(factories) as states:
        _check_one_log(states)
        return [_prefix(state) for state in states]


@contextmanager
def _located(factories: Sequence[MapStateFactory]) -> Iterator[list[StoredMap]]:
    """Open states where they are now, all of which are there, in one store."""
    if len({factory.identity[:2] for factory in factories}) > 1:
        advice = (
            "Keep all states of a group in one store, or make one group for each. Or build them by "
            "rebuild --no-swap, and give the topology and its readers the new prefixes."
        )
        raise UsageError("states of several stores can't move at once", "", (), advice)
    with ExitStack() as opened:
        states = [opened.enter_context(closing(factory.makeMap())) for factory in factories]
        for state in states:
            state.locate()
            if state.control.ask()() is None:
                raise NoStateError(state.backing.where, state.backing.prefix)
        yield states


def _move_all(pairs: Sequence[tuple[StoredMap, StoredMap]]) -> bool:
    """Change all records; return False where one has changed meanwhile."""
    first = pairs[0][0]
    if Ability.MOVE in abilities(first.backing):
        moves = []
        for old, new in pairs:
            before, after = old.control.before_move(_move_to(new))
            moves.append((_prefix(old), after, before, _prefix(new)))
        return first.backing.moveControls(moves)
    deciding = Deciding(_prefix(first), _prefix(pairs[0][1]), first.kind)
    if not all(_finds(old, first, deciding) for old, _ in pairs[1:]):
        return False
    if not all(_moved(old, _move_to(new, once=deciding)) for old, new in pairs[1:]):
        return False
    return all(_moved(old, _move_to(new)) for old, new in pairs)


def _move_to(state: StoredMap, once: Deciding | None = None) -> Move:
    return Move(_prefix(state), state.kind, once)


def _moved(state: StoredMap, move: Move) -> bool:
    if not state.control.move(move):
        return False
    state.backing.flush()
    return True


def _finds(state: StoredMap, first: StoredMap, deciding: Deciding) -> bool:
    """Whether who reads `state` finds the first record; False too where that has changed."""
    assert state.elsewhere is not None
    expected = first.backing.getControl()
    with closing(layers(state.elsewhere(deciding.prefix, deciding.kind))[1]) as there:
        if there.getControl() == expected:
            return True
    if first.backing.getControl() == expected:
        what = f"states in several layouts can't move at once: who reads {_prefix(state)!r} misses"
        raise UsageError(what, deciding.prefix, (), "Swap each by a command of its own.")
    return False


def _check_apart(places: Sequence[set[str]]) -> None:
    """Raise where two states have a prefix in common: their own, where they are, or are to be."""
    for one, other in combinations(places, 2):
        if one & other:
            what = "two states can't have one place, or that of one another:"
            raise UsageError(what, ", ".join(sorted(one & other)), (), "Give each its own prefix.")


def _check_in_place(old: str, new: str, place: str) -> None:
    if old != place:
        what = f"{old!r} was put in the place of {place!r} since this one began to be built:"
        advice = "Give the same command again if it is to take the place of that one."
        raise UsageError(what, new, (), advice)


def _check_untaken(
    factory: MapStateFactory, pairs: Sequence[tuple[StoredMap, StoredMap]], own: Set[str]
) -> None:
    """Raise where what is to take a place has that of yet another state, as far as is found."""
    targets = {_name(factory, _prefix(new)) for _, new in pairs}
    for prefix in sorted(pairs[0][0].backing.prefixes()):
        if _name(factory, prefix) in own:
            continue
        # What can't be read, as it is damaged or of another kind, leads no reader anywhere.
        with suppress(StateError), closing(factory.at(prefix).makeMap()) as other:
            found = other.control.last()
            if found and found.move and _name(factory, found.move.to) in targets:
                what = f"{found.move.to!r} can't take two places; it has that of the state"
                raise UsageError(what, prefix, (), "Build a state for each of the two.")


def _check_one_log(olds: Sequence[StoredMap]) -> None:
    logs = {found.log_id for old in olds if (found := old.control.ask()()) is not None}
    if len(logs) > 1:
        what = "the states that others are to take the places of belong to several logs:"
        advice = "Swap those of each log by a command of its own: python -m trident state swap."
        raise UsageError(what, ", ".join(sorted(logs)), (), advice)


def _name(factory: MapStateFactory, prefix: str) -> str:
    """What tells a prefix from others in its store, which may not heed the case of letters."""
    return factory.at(prefix).identity[2]


def _prefix(state: StoredMap) -> str:
    return state.backing.prefix or ""


def _log_of(news: Sequence[StoredMap]) -> str:
    """The log that has built all of some states, each as of a batch."""
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
    return logs.pop()


def _retry(change: Callable[[], bool], state: StoredMap) -> None:
    """Change records, which a run that is alive keeps changing as well."""
    for _ in range(_TRIES):
        if change():
            return
    raise StateUnavailableError(
        state.control.place, f"control records changed {_TRIES} times meanwhile", "Try again."
    )
