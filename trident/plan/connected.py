"""The connected steps of a topology, kept up while it is declared.

Each step that is declared is checked against those that it is connected with. What these checks
look at is kept here as steps come, so that no check walks the steps: to declare a topology takes a
time that grows with its steps, not with their square.
"""

from __future__ import annotations

from collections.abc import Iterator

from trident.operations.kept_answers import KeptAnswers
from trident.plan.nodes import DRPCNode, Node, SourceNode, StateUpdateNode


class Connected:
    """Steps that are connected.

    Its queries read the states `asked`, which a topology updates. `updates` is whether one of the
    steps updates a state, `keeps_answers` whether one keeps the answers to requests.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.sources: list[SourceNode] = []
        self.requests: list[DRPCNode] = []
        self.asked: list[StateUpdateNode] = []
        self.updates = False
        self.keeps_answers = False

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        match node:
            case SourceNode():
                self.sources.append(node)
            case DRPCNode():
                self.requests.append(node)
            case Node(asks_updated=StateUpdateNode() as state):
                self.asked.append(state)
            case StateUpdateNode(updater=KeptAnswers()):
                self.keeps_answers = True
            case StateUpdateNode():
                self.updates = True

    def absorb(self, other: Connected) -> None:
        """Add all steps of another one."""
        self.nodes += other.nodes
        self.sources += other.sources
        self.requests += other.requests
        self.asked += other.asked
        self.updates |= other.updates
        self.keeps_answers |= other.keeps_answers


class ConnectedSteps:
    """The components of a topology, by step."""

    def __init__(self) -> None:
        self._of: dict[Node, Connected] = {}

    def of(self, node: Node) -> Connected:
        """Return the component of a step that was added."""
        return self._of[node]

    def connected(self, node: Node) -> list[Connected]:
        """Return the components that a step connects, which isn't added yet, each once."""
        return list({id(found): found for found in map(self.of, neighbours(node))}.values())

    def add(self, node: Node) -> None:
        """Add a step: the largest component that it connects takes in the others."""
        largest, *others = sorted(
            self.connected(node) or [Connected()], key=lambda each: -len(each.nodes)
        )
        for other in others:
            largest.absorb(other)
            self._of.update(dict.fromkeys(other.nodes, largest))
        largest.add(node)
        self._of[node] = largest

    def __iter__(self) -> Iterator[Connected]:
        return iter({id(each): each for each in self._of.values()}.values())


def neighbours(node: Node) -> tuple[Node, ...]:
    """The steps that a step is connected with: its parents, and within a batch the update of the
    state that it queries."""
    asked = None if node.of_query else node.asks_updated
    return node.parents if asked is None else (*node.parents, asked)
