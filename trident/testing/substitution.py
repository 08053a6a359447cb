"""A plan as a tester runs it: with other sources and states, and what it records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.plan.nodes import (
    DRPCNode,
    Kind,
    Node,
    SourceNode,
    StateDeclaration,
    StateUpdateNode,
)
from trident.plan.plan import Plan
from trident.states.state import Batch, State, StateFactory
from trident.states.values import StateType
from trident.tuples.fields import Fields


def substituted(
    plan: Plan,
    source: Callable[[Fields, Kind], Any],
    state: Callable[[StateDeclaration], StateDeclaration],
) -> dict[Node, Node]:
    """Return a copy of each node of a plan, with other sources and states.

    A source is made of the fields and kind of the one before: a spout, also for a DataFrame.
    """
    copies: dict[Node, Node] = {}

    def other(value: Any) -> Any:
        if isinstance(value, Node):
            return copies[value]
        if isinstance(value, tuple):
            return tuple(map(other, value))
        return state(value) if isinstance(value, StateDeclaration) else value

    for node in plan.nodes:
        parts = {each.name: getattr(node, each.name) for each in fields(node)}
        changed = {name: other(value) for name, value in parts.items()}
        if isinstance(node, SourceNode):
            fed = source(node.declared, node.kind)
            changed |= {"source": fed, "clock": "spout", "output_mode": "append"}
        copies[node] = replace(node, **changed)
    return copies


def ends(plan: Plan) -> list[Node]:
    """The steps of batches whose tuples no other step takes."""
    return [
        node
        for node in plan.nodes
        if not plan.consumers(node)
        and node.updates is None
        and not any(isinstance(root, DRPCNode) for root in node.roots)
        and plan.group_of(node) is not None
    ]


class Recorded:
    """What steps have emitted in the batch that was committed last."""

    def __init__(self) -> None:
        self.tuples: dict[Node, list[Any]] = {}

    def recorder(self, id: int, node: Node, copy: Node) -> Node:
        """Return a step that records what the copy of a node emits."""
        self.tuples[node] = []
        names = Fields(*copy.fields.names)
        factory = _RecordFactory(self.tuples[node])
        return StateUpdateNode(
            id=id,
            origin=replace(copy.origin, call="partitionPersist"),
            parent=copy,
            state=StateDeclaration(f"what step {node.id} emits", factory),
            inputs=names,
            updater=_Record(),
            outputs=Fields(),
        )

    def begin(self) -> None:
        """Forget the batch before."""
        for rows in self.tuples.values():
            rows.clear()


class _Record(StateUpdater["_Rows"]):
    def updateState(self, state: _Rows, tuples: Sequence[Any], collector: TridentCollector) -> None:
        state.pending.extend(tuple(each) for each in tuples)


class _Rows(State):
    kind = StateType.OPAQUE

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows
        self.pending: list[Any] = []

    def beginCommit(self, batch: Batch) -> None:
        self.pending = []

    def commit(self, batch: Batch) -> None:
        self._rows[:] = self.pending


@dataclass(frozen=True, eq=False)
class _RecordFactory(StateFactory):
    rows: list[Any]
    kind = StateType.OPAQUE
    hosted: Literal["driver", "executor"] = "driver"

    def makeState(self, *_: Any, **__: Any) -> State:
        return _Rows(self.rows)


def recorded_plan(copies: dict[Node, Node], watched: Iterable[Node], recorded: Recorded) -> Plan:
    """Return the plan of the copies, with a step for each watched node that records it."""
    nodes = list(copies.values())
    for node in watched:
        nodes.append(recorded.recorder(nodes[-1].id + 1, node, copies[node]))
    return Plan(tuple(nodes))
