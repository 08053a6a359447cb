"""What is guaranteed of a state: it follows from the kinds of its stream and of its map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from trident.operations.annotations import callable_name, returned_class
from trident.operations.interfaces import Consumer
from trident.plan.nodes import (
    DRPCNode,
    Kind,
    Node,
    SourceNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
)
from trident.plan.overlap import may_be_staged
from trident.plan.places import kept_as
from trident.plan.plan import Plan, ancestors
from trident.states.backing_map import Ability, IBackingMap, abilities_of
from trident.states.state import StateFactory
from trident.states.values import StateType

Level = Literal["exactly once", "at least once", "at most once", "best effort", "not known"]
_CONDITIONAL = {Ability.FENCED, Ability.ENTRY, Ability.VERSIONED}
_NOT_REPEATED = (None, StateType.NON_TRANSACTIONAL)
STRENGTH: tuple[Kind, ...] = ("non-transactional", "opaque", "transactional")

_TABLE: dict[tuple[Kind, StateType], tuple[Level, str]] = {
    ("transactional", StateType.OPAQUE): ("exactly once", ""),
    ("transactional", StateType.TRANSACTIONAL): ("exactly once", ""),
    ("transactional", StateType.NON_TRANSACTIONAL): (
        "at least once",
        "a replayed batch is counted again",
    ),
    ("opaque", StateType.OPAQUE): ("exactly once", ""),
    ("opaque", StateType.TRANSACTIONAL): (
        "best effort",
        "a batch replayed with other tuples is not taken back",
    ),
    ("opaque", StateType.NON_TRANSACTIONAL): ("at least once", "a replayed batch is counted again"),
    ("non-transactional", StateType.OPAQUE): (
        "at most once",
        "tuples of a failed batch may not come again",
    ),
    ("non-transactional", StateType.TRANSACTIONAL): (
        "best effort",
        "tuples of a failed batch may not come again, and other ones are not taken back",
    ),
    ("non-transactional", StateType.NON_TRANSACTIONAL): (
        "best effort",
        "tuples of a failed batch may not come again, and a replayed one is counted again",
    ),
}


@dataclass(frozen=True)
class Guarantee:
    """What is guaranteed of a state's content, why, and what would be exact."""

    level: Level
    why: str
    advice: str | None = None

    @property
    def exact(self) -> bool:
        """Whether the state is exact, as far as that is known."""
        return self.level in ("exactly once", "not known")


def guarantee(plan: Plan, update: StateUpdateNode, max_pending: int = 1) -> Guarantee:
    """The guarantee of one state, by the table and its store; what is staged is written as
    computed."""
    stream, lowered = stream_kind(update)
    group = plan.group_of(update)
    staged = max_pending > 1 and group is not None and may_be_staged(group)
    factory = update.state.factory
    kept = factory.kind
    if kept is None:
        why = f"{factory.label} doesn't tell how it keeps values (its kind)"
        return Guarantee("not known", why)
    replayed: Kind = "transactional" if staged and stream == "opaque" else stream
    level, problem = _TABLE[replayed, kept]
    source = f"{stream} stream{f' ({lowered})' if lowered else ''}"
    if replayed != stream:
        source += " whose batches are staged"
    if factory.max_keys:
        keeps = f"it keeps {factory.max_keys:,} keys and forgets the others"
        why = f"{source}, {kept_as(factory)}; {keeps}"
        return Guarantee("best effort", why, "Exact would be a map without a bound.")
    problem = problem or _late_write_problem(factory)
    why = f"{source}, {kept_as(factory)}" + (f"; {problem}" if problem else "")
    return Guarantee(level, why, None if level == "exactly once" else _advice(stream, kept))


def stream_kind(update: StateUpdateNode) -> tuple[Kind, str]:
    """How the stream into a state replays a batch, and what lowered it, if anything did."""
    before = [node for node in ancestors(update) if node is not update]
    # A request that failed comes again when its client wants it to, with others.
    kinds: list[Kind] = ["opaque" for node in before if isinstance(node, DRPCNode)]
    kinds += [node.kind for node in before if isinstance(node, SourceNode)]
    weakest: Kind = min(kinds, key=STRENGTH.index)
    if weakest != "transactional":
        return weakest, ""
    for node in before:
        if reason := _why_replays_differ(node):
            return "opaque", reason
    return "transactional", ""


def _why_replays_differ(node: Node) -> str:
    """Why a step may give something else when its batch is replayed; empty where it may not."""
    operation = node.operation
    # A consumer changes no tuple, whatever it does.
    fixed = operation is None or operation.deterministic or isinstance(operation, Consumer)
    if not fixed:
        return f"{node.call_text} is not deterministic"
    if isinstance(node, StateQueryNode):
        static = isinstance(node.asks, StaticStateNode)
        if static or node.asks.state.factory.kind is not StateType.OPAQUE:
            how = "static" if static else "not opaque"
            return f"{node.call_text} reads a state that is {how}"
    if isinstance(node, StateUpdateNode) and node.state.factory.kind in _NOT_REPEATED:
        return f"{node.call_text} gives new values that a replay changes"
    return ""


def _late_write_problem(factory: StateFactory) -> str:
    """What can go wrong because the store accepts late writes, or may; empty where it refuses
    them."""
    opens = factory.opens
    if opens is None:
        return ""
    make = opens.func if isinstance(opens, partial) else opens
    made = factory.map_type or returned_class(make, IBackingMap)
    if made is None:
        name = callable_name(make)
        return (
            f"whether the map that {name} makes can refuse a late write is not known (annotate "
            "what it returns); if not, a task must end before its retry writes"
        )
    if _CONDITIONAL & abilities_of(made):
        return ""
    return f"{made.__name__} can't refuse a late write, so a task must end before its retry writes"


def _advice(stream: Kind, kept: StateType) -> str:
    exact = ["a source that replays what was not acknowledged"] * (stream == "non-transactional")
    if kept is not StateType.OPAQUE:
        exact.append("an opaque map, such as MemoryMapState or a backend's opaque(…)")
    return f"Exact would be {' and '.join(exact)}."
