"""Puts states that were built anew in the place of old ones, by changing the old control records.

"Moves" in docs/protocol.md says what readers and runs do then, and how several states move at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import combinations

from trident.states.backing_map import Ability, abilities
from trident.states.control import ControlRecord, Deciding, Move
from trident.states.errors import NoStateError, StateError, StateUnavailableError, UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import STAND_ALONE, StoredMap
from trident.states.table.build import layers

_TRIES = 1000


def swap_states(
    states: Sequence[tuple[MapStateFactory, str]], places: Sequence[str] | None = None
) -> None:
    """Put new states in the places of old ones, all at once.

    The run that updates an old state ends with an error. Old entries stay until ``state drop``
    removes them. A kill at any point leaves all old states in their places, or all new ones. Called
    again it goes on; called after its end it does nothing.

    Parameters
    ----------
    states : sequence of (MapStateFactory, str)
        The factory of each old state, with the prefix that its topology gives it, and the prefix of
        the new state.
    places : sequence of str, optional
        The prefix of each old state when the new one began to be built, from :func:`check_places`.

    Raises
    ------
    UsageError
        For states of several stores, logs or layouts, whose records can't be changed together; for
        two states with one place; for a new state that has committed no batch, or has taken another
        place already; for an old state whose prefix has changed since `places`.
    NoStateError
        When one of the states is missing.
    MovedStateError
        When another state has taken the place of a new one.

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
        unmoved: list[tuple[StoredMap, StoredMap]] = []
        befores = places or map(_prefix, olds)
        for (factory, _), (old, new), before in zip(states, pairs, befores, strict=True):
            if _name(factory, _prefix(old)) != _name(factory, _prefix(new)):
                _check_place(_prefix(old), _prefix(new), before)
                unmoved.append((old, new))
        log_id, replaced = _log_of_new(news), _log_of_old([old for old, _ in unmoved])
        if replaced is not None and replaced == log_id != STAND_ALONE:
            what = f"{unmoved[0][1].control.place} is of the same log as the state to replace:"
            raise UsageError(what, replaced)
        if unmoved:
            _check_untaken(states[0][0], unmoved, set().union(*own))
            _retry(partial(_move_all, unmoved), unmoved[0][0])


def check_places(factories: Sequence[MapStateFactory]) -> list[str]:
    """Raise the errors of :func:`swap_states` for old states, before new ones are built.

    Returns the present prefixes of the states.
    """
    with _located(factories) as states:
        _log_of_old(states)
        return [_prefix(state) for state in states]


@contextmanager
def _located(factories: Sequence[MapStateFactory]) -> Iterator[list[StoredMap]]:
    """Open states of one store in their present places; raise NoStateError for a missing one."""
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
    """Change all records; return False if one has changed meanwhile."""
    first = pairs[0][0]
    if Ability.MOVE in abilities(first.backing):
        moves = []
        for old, new in pairs:
            before, after = old.control.before_move(_move_to(new))
            moves.append((_prefix(old), after, before, _prefix(new)))
        return first.backing.moveControls(moves)
    deciding = Deciding(_prefix(first), _prefix(pairs[0][1]), first.kind)
    return (
        all(_readers_find(deciding, old, first) for old, _ in pairs[1:])
        and all(_move(old, _move_to(new, once=deciding)) for old, new in pairs[1:])
        and all(_move(old, _move_to(new)) for old, new in pairs)
    )


def _move_to(state: StoredMap, once: Deciding | None = None) -> Move:
    return Move(_prefix(state), state.kind, once)


def _move(state: StoredMap, move: Move) -> bool:
    if not state.control.move(move):
        return False
    state.backing.flush()
    return True


def _readers_find(deciding: Deciding, state: StoredMap, first: StoredMap) -> bool:
    """Return whether readers of `state` find the first record; False if it changes meanwhile."""
    assert state.elsewhere is not None
    expected = first.backing.getControl()
    with closing(layers(state.elsewhere(deciding.prefix, deciding.kind))[1]) as found:
        if found.getControl() == expected:
            return True
    if first.backing.getControl() == expected:
        what = f"states of several layouts can't move at once: readers of {_prefix(state)!r} miss"
        raise UsageError(what, deciding.prefix, (), "Swap each by a command of its own.")
    return False


def _check_apart(places: Sequence[set[str]]) -> None:
    """Raise if two states share a prefix: their own one, the present one or the new one."""
    for one, other in combinations(places, 2):
        if one & other:
            what = "two states share a prefix, an old or a new one:"
            raise UsageError(what, ", ".join(sorted(one & other)), (), "Give each its own prefix.")


def _check_place(old: str, new: str, place: str) -> None:
    if old != place:
        what = f"{old!r} has replaced {place!r} since the new state began to be built:"
        advice = "Give the same command again to replace that one."
        raise UsageError(what, new, (), advice)


def _check_untaken(
    factory: MapStateFactory, pairs: Sequence[tuple[StoredMap, StoredMap]], own: Set[str]
) -> None:
    """Raise if a new state has taken the place of yet another state that can be found."""
    targets = {_name(factory, _prefix(new)) for _, new in pairs}
    for prefix in sorted(pairs[0][0].backing.prefixes()):
        if _name(factory, prefix) in own:
            continue
        # A state that can't be read, as it is damaged or of another kind, has no readers.
        with suppress(StateError), closing(factory.at(prefix).makeMap()) as other:
            found = other.control.last()
            if found and found.move and _name(factory, found.move.to) in targets:
                what = f"{found.move.to!r} can't replace two states; it has replaced"
                raise UsageError(what, prefix, (), "Build a state for each of the two.")


def _log_of_old(states: Sequence[StoredMap]) -> str | None:
    """Return the one log that updates all old states."""
    advice = "Swap those of each log by a command of its own: python -m trident state swap."
    return _log_of([state.control.ask()() for state in states], "states to replace", advice)


def _log_of_new(states: Sequence[StoredMap]) -> str | None:
    """Return the one log that has built all new states, each with a committed batch."""
    records = [state.control.expect() for state in states]
    for state, record in zip(states, records, strict=True):
        if record is None or not record.committed:
            advice = "Build it anew first: python -m trident rebuild."
            raise UsageError(f"{state.control.place} has committed no batch", "", (), advice)
    return _log_of(records, "new states", "Build all states of a group anew by one run.")


def _log_of(records: Sequence[ControlRecord | None], which: str, advice: str) -> str | None:
    logs = sorted({record.log_id for record in records if record is not None})
    if len(logs) > 1:
        raise UsageError(f"the {which} belong to several logs:", ", ".join(logs), (), advice)
    return logs[0] if logs else None


def _name(factory: MapStateFactory, prefix: str) -> str:
    """Return a prefix as its store compares it: some stores ignore the case of letters."""
    return factory.at(prefix).identity[2]


def _prefix(state: StoredMap) -> str:
    return state.backing.prefix or ""


def _retry(change: Callable[[], bool], state: StoredMap) -> None:
    """Try to change records again and again, as a live run changes them too."""
    for _ in range(_TRIES):
        if change():
            return
    raise StateUnavailableError(
        state.control.place, f"control records changed {_TRIES} times meanwhile", "Try again."
    )
