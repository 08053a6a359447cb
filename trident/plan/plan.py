"""A plan: its nodes, its batch groups and its queries, and which of its steps are connected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from trident.operations.kept_answers import KeptAnswers
from trident.plan.nodes import (
    Clock,
    DRPCNode,
    Node,
    OnError,
    OutputMode,
    SourceNode,
    StateDeclaration,
    StateNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStreamNode,
)
from trident.plan.origins import watches_origins


@dataclass(frozen=True)
class BatchGroup:
    """A connected part of the plan, whose streams share one txid.

    Its id is the smallest of its streams'; of the requests to a function, ``"drpc/"`` and its name.
    `hosted` says which process updates its states, in place of what their factories say. `on_error`
    is for steps that say nothing of it.
    """

    id: str
    nodes: tuple[Node, ...]
    hosted: Literal["driver"] | None = None
    on_error: OnError = "fail"

    def is_here(self, state: StateDeclaration) -> bool:
        """Whether the driver updates a state."""
        return (self.hosted or state.factory.hosted) == "driver"

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        """Its streams, in order of their ids."""
        found = [node for node in self.nodes if isinstance(node, SourceNode)]
        return tuple(sorted(found, key=lambda node: node.stream_id))

    @property
    def requests(self) -> DRPCNode | None:
        """The DRPC stream of its requests, which update a state; None for a group of streams."""
        return next((node for node in self.nodes if isinstance(node, DRPCNode)), None)

    @property
    def answers(self) -> StateUpdateNode | None:
        """The step that keeps the answers to its requests."""
        keeping = (node for node in self.updates if isinstance(node.updater, KeptAnswers))
        return next(keeping, None)

    @property
    def steps(self) -> tuple[Node, ...]:
        """The steps that run for a batch or a request: all but the one that keeps the answers."""
        kept = self.answers
        return tuple(node for node in self.nodes if node is not kept)

    @property
    def result(self) -> Node | None:
        """The step whose tuples answer requests; None for a group of streams."""
        return self.steps[-1] if self.requests else None

    @property
    def updates(self) -> tuple[StateUpdateNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, StateUpdateNode))

    @property
    def states(self) -> tuple[StateNode, ...]:
        """The states that it updates or looks up, each once, in order of creation."""
        return _once([*self.updates, *_asked(self.nodes)])

    @property
    def acting_on_nothing(self) -> tuple[Node, ...]:
        """The steps that act on a batch without tuples; without them it changes nothing."""
        return tuple(node for node in self.nodes if node.acts_on_nothing)

    @property
    def reads_own(self) -> bool:
        """Whether a step reads a state that the group updates."""
        return any(node.asks_updated is not None for node in self.nodes)

    @property
    def timed(self) -> bool:
        """Whether a step asks for the time of batches."""
        return any(update.updater.timed for update in self.updates)

    @property
    def ageing(self) -> bool:
        """Whether entries of a state expire by the time of batches."""
        return any(each.expiry is not None and each.expiry.field is None for each in self.updates)

    @property
    def idle_times(self) -> tuple[float, ...]:
        """After how many seconds without tuples a step asks for a batch without any."""
        return tuple(update.updater.idle for update in self.updates if update.updater.idle)

    @property
    def partitioned(self) -> bool:
        """Whether a step asks which partitions of its sources are active."""
        return any(map(watches_origins, self.updates))

    @property
    def clock(self) -> Clock:
        """What makes its batches: Structured Streaming if any stream is a DataFrame."""
        frames = any(source.clock == "dataframe" for source in self.sources)
        return "dataframe" if frames else "spout"

    @property
    def output_mode(self) -> OutputMode:
        """Which rows of aggregating DataFrames are a batch; the same for all of its streams."""
        return self.sources[0].output_mode


@dataclass(frozen=True)
class DRPCQuery:
    """A query, and the last step declared on its stream, whose tuples are the answer."""

    function: str
    source: DRPCNode
    result: Node

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The steps that lead to the result, in order of creation."""
        return ancestors(self.result)

    @property
    def steps(self) -> tuple[Node, ...]:
        """What is run for a request: all of them."""
        return self.nodes

    @property
    def frames(self) -> tuple[StaticStreamNode, ...]:
        """The batch DataFrames that it reads, in order of creation."""
        return tuple(node for node in self.nodes if isinstance(node, StaticStreamNode))

    @property
    def states(self) -> tuple[StateNode, ...]:
        """The states it reads, each once, in order of creation."""
        return _once(_asked(self.nodes))


Part = BatchGroup | DRPCQuery
"""What is compiled by itself."""


@dataclass(frozen=True)
class Plan:
    """All steps of a topology, parents first; `hosted` and `on_error` are those of all groups."""

    nodes: tuple[Node, ...]
    hosted: Literal["driver"] | None = None
    on_error: OnError = "fail"

    @cached_property
    def groups(self) -> tuple[BatchGroup, ...]:
        """The batch groups, in order of their ids."""
        groups = []
        for steps in self._connected:
            ids = [node.stream_id for node in steps.sources]
            if not ids and steps.updates:
                ids = [f"drpc/{node.function}" for node in steps.requests]  # no id has a slash
            if ids:
                groups.append(BatchGroup(min(ids), steps.ordered, self.hosted, self.on_error))
        return tuple(sorted(groups, key=lambda group: group.id))

    @cached_property
    def drpc(self) -> Mapping[str, DRPCQuery]:
        """The queries by function, in order of creation: DRPC streams that update no state."""
        queries = {}
        for steps in self._connected:
            for source in steps.requests if not steps.updates else ():
                # Steps of static streams may have been declared since.
                last = next(node for node in reversed(steps.ordered) if source in node.roots)
                queries[source.function] = DRPCQuery(source.function, source, last)
        return MappingProxyType(queries)

    @cached_property
    def updating(self) -> tuple[str, ...]:
        """The functions whose requests update a state; those of each are a batch group."""
        sources = [group.requests for group in self.groups]
        return tuple(source.function for source in sources if source is not None)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.groups, *self.drpc.values())

    @cached_property
    def states(self) -> tuple[StateNode, ...]:
        """Every state of the topology, in order of creation."""
        return tuple(node for node in self.nodes if isinstance(node, StateNode))

    @cached_property
    def updates(self) -> tuple[StateUpdateNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, StateUpdateNode))

    @cached_property
    def look_ups(self) -> tuple[StateQueryNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, StateQueryNode))

    def update_of(self, state: StateDeclaration) -> StateUpdateNode | None:
        """The step that updates a state; None for a static one."""
        return next((node for node in self.updates if node.state is state), None)

    def group_of(self, node: Node) -> BatchGroup | None:
        """The batch group that a step belongs to; None for those of queries and static states."""
        return next((group for group in self.groups if node in group.nodes), None)

    @cached_property
    def _connected(self) -> tuple[Connected, ...]:
        """Connected steps; a query inside a batch connects it with the state's update."""
        components = ConnectedSteps()
        for node in self.nodes:
            components.add(node)
        return tuple(components)


def _asked(nodes: Iterable[Node]) -> Iterator[StateNode]:
    return (node.asks for node in nodes if node.asks is not None)


def _once(states: Iterable[StateNode]) -> tuple[StateNode, ...]:
    return tuple(sorted(set(states), key=_by_id))


def ancestors(node: Node) -> tuple[Node, ...]:
    """A step and all that leads to it, in order of creation."""
    pending, found = [node], {node}
    while pending:
        fresh = set(pending.pop().parents) - found
        found |= fresh
        pending += fresh
    return tuple(sorted(found, key=_by_id))


def _by_id(node: Node) -> int:
    return node.id


@dataclass(eq=False)
class Connected:
    """Steps that are connected, and some of them again by what the checks of later steps need."""

    nodes: list[Node] = field(default_factory=list)
    sources: list[SourceNode] = field(default_factory=list)
    requests: list[DRPCNode] = field(default_factory=list)
    asked: list[StateUpdateNode] = field(default_factory=list)
    updates: list[Node] = field(default_factory=list)
    answers: list[Node] = field(default_factory=list)

    @property
    def ordered(self) -> tuple[Node, ...]:
        """The steps in order of creation."""
        return tuple(sorted(self.nodes, key=_by_id))

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
                self.answers.append(node)
            case StateUpdateNode():
                self.updates.append(node)

    def absorb(self, other: Connected) -> None:
        """Add all steps of another one."""
        for name, steps in vars(other).items():
            getattr(self, name).extend(steps)


class ConnectedSteps:
    """The components of a topology, by step, kept up while it is declared.

    Each step is checked against the steps that it is connected with. What these checks need is kept
    with the component, so that the time to declare a topology grows with its steps, not with their
    square.
    """

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
