"""Collects the nodes of a topology while it is declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from trident.backends.state_spec import StateSpec
from trident.backends.state_url import StateURL
from trident.errors import DuplicateNameError, OperationTypeError, PlanError, described
from trident.operations.interfaces import Operation, operation_name
from trident.operations.kept_answers import KeptAnswers
from trident.plan.call_site import caller
from trident.plan.nodes import (
    DRPCNode,
    NativeNode,
    Node,
    SourceNode,
    StateDeclaration,
    StateNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
    StaticStreamNode,
)
from trident.plan.plan import Connected, ConnectedSteps, Plan, ancestors
from trident.plan.value_forms import Form, with_form
from trident.states.errors import StateURLError
from trident.states.schema import ValueSchema
from trident.states.state import StateFactory
from trident.tuples.fields import Fields
from trident.windows.window_updater import WindowUpdater

N = TypeVar("N", bound=Node)


@dataclass
class Builder:
    """The nodes of a topology while it is declared: a list to which each call appends.

    Only this list changes in a topology: the nodes, and the handles on them, are immutable. What
    the checks of later calls need is kept beside it, so that no check walks the list.
    """

    nodes: list[Node] = field(default_factory=list)
    _components: ConnectedSteps = field(default_factory=ConnectedSteps)
    _taken: dict[tuple[str, object], Node] = field(default_factory=dict)
    """The steps by what is unique of them: ids, functions, and names and places of states."""

    @classmethod
    def of(cls, plan: Plan) -> Builder:
        """A builder that goes on from a plan, and leaves it as it is."""
        made = cls(list(plan.nodes))
        made._forget()
        return made

    def add(self, kind: type[N], /, **parts: Any) -> N:
        """Make a node and append it; a node that is wrong is not appended."""
        node = kind(id=len(self.nodes) + 1, origin=caller(), **parts)
        connected = self._components.connected(node)
        _check_roots(node, connected)
        self._check_requests(node, connected)
        if len(connected) > 1:
            _check_shared_batches(node, connected)
        self.nodes.append(node)
        self._know(node)
        return node

    @contextmanager
    def together(self) -> Iterator[None]:
        """Append all nodes that are added within, or none when one of them is wrong."""
        before = len(self.nodes)
        try:
            yield
        except Exception:
            del self.nodes[before:]
            self._forget()
            raise

    def _know(self, node: Node) -> None:
        self._components.add(node)
        match node:
            case SourceNode():
                self._taken["stream", node.stream_id] = node
            case DRPCNode():
                self._taken["function", node.function] = node
            case StateUpdateNode() | StaticStateNode():
                self._taken["state", node.state.name] = node
                self._taken["state", node.state.kept_name] = node
                self._taken["place", node.state.factory.identity] = node

    def _forget(self) -> None:
        """Forget the nodes that are no longer in the list."""
        self._components, self._taken = ConnectedSteps(), {}
        for node in self.nodes:
            self._know(node)

    def state(
        self,
        call: str,
        given: object,
        name: str | None,
        outputs: Iterable[str],
        key: Fields | None = None,
        operation: object = None,
        form: Form = ValueSchema,
    ) -> StateDeclaration:
        """Declare a state by its own name or the output's; its name and place are its own."""
        spec = given if isinstance(given, StateSpec) else StateSpec(_factory(call, given))
        name = name or spec.name or "_".join(outputs) or "state"
        partitions, before = spec.requiredNumPartitions, _first_name(call, spec.renamed_from)
        _check_partitions(call, partitions)
        state = StateDeclaration(name, _factory(call, spec.stateFactory), partitions, before)
        self._check_name(call, state)
        factory = state.factory.named(state.kept_name)
        if key is not None:
            factory = factory.keyed(list(key.types.values()))
        factory = with_form(call, factory, spec, operation, form)
        self._check_identity(call, name, factory.identity)
        return replace(state, factory=factory)

    def check_stream_id(self, call: str, stream_id: object) -> str:
        """Stream ids are plain names, and unique, as the log keeps them."""
        if not isinstance(stream_id, str) or not stream_id or set(stream_id) & set("/\\\0"):
            advice = 'Use a short name without slashes, as in newStream("sentences", …).'
            what = f"{call}: a stream's id can't be {stream_id!r:.60}"
            raise PlanError(what, "", (), advice)
        if (node := self._taken.get(("stream", stream_id))) is not None:
            what = f"{call}: at {node.origin} there is already a stream"
            raise DuplicateNameError(what, stream_id, (), "Give each stream its own id.")
        return stream_id

    def check_function(self, call: str, function: object) -> str:
        """A DRPC function has a name, and one stream answers it."""
        if not isinstance(function, str) or not function:
            advice = 'Write newDRPCStream("words").'
            what = f"{call}: a function's name can't be {function!r:.60}"
            raise PlanError(what, "", (), advice)
        if (node := self._taken.get(("function", function))) is not None:
            what = f"{call}: at {node.origin} there is already a DRPC function"
            raise DuplicateNameError(what, function, (), "Give each function its own name.")
        return function

    def plan(self) -> Plan:
        return Plan(tuple(self.nodes))

    def _check_name(self, call: str, state: StateDeclaration) -> None:
        for name in state.name, state.kept_name:
            node = self._taken.get(("state", name))
            if isinstance(node, StateNode):
                was = "" if node.state.name == name else f" {node.state.name!r}, renamed from"
                what = f"{call}: at {node.origin} there is already a state{was}"
                advice = (
                    "Give one of the two another name (name=…). To update one state from several "
                    "streams, merge() them first."
                )
                raise DuplicateNameError(what, name, (), advice)

    def _check_identity(self, call: str, name: str, identity: tuple[str, ...] | None) -> None:
        node = self._taken.get(("place", identity))
        if identity is not None and isinstance(node, StateNode):
            place = " · ".join(part for part in identity if part)
            what = f"{call}: state {name!r} would be kept where {node.state.name!r} already is:"
            advice = (
                "Give one of the two another prefix, of Rows another name=; or update one "
                "state from merge()d streams."
            )
            raise DuplicateNameError(what, place, (), advice)

    def _check_requests(self, node: Node, connected: Sequence[Connected]) -> None:
        """Refuse what the batches of requests can't do: they share no batch with streams, and they
        need a place for the answers."""
        call = node.origin.call
        requests = [source for each in connected for source in each.requests]
        begins = isinstance(node, StateUpdateNode) and not isinstance(node.updater, KeptAnswers)
        updated = any(each.updates for each in connected)
        if not requests or not (isinstance(node, StateQueryNode) or begins):
            return
        function = requests[0].function
        if any(each.sources for each in connected):
            what = f"{call}: a stream can't read a state that the requests to a function update:"
            raise PlanError(what, function, (), "Query it by newDRPCStream().")
        if not updated and not begins:
            return  # a query that updates nothing
        if not any(each.answers for each in connected):
            what = f"{call}: nothing keeps the answers to requests, which update a state, to"
            advice = (
                "Say where, as in newDRPCStream("
                f'"{function}", answers="sqlite:answers.db"): a request that its client '
                "repeats is then answered, and not applied again."
            )
            raise PlanError(what, function, (), advice)
        # Where it updated before, what was asked before has been checked.
        asked = [] if updated else [state for each in connected for state in each.asked]
        if node.asks_updated is not None:
            asked = [*asked, node.asks_updated]
        for state in asked:
            if self._components.of(state) not in connected:
                what = f"{call}: requests that update a state can't read a state of other batches:"
                advice = "Let them query states that they update, or static ones."
                raise PlanError(what, state.state.name, (), advice)


class Position(NamedTuple):
    """Where a call adds its steps: behind a step, of whose tuples the call may see groups."""

    builder: Builder
    node: Node
    group: Fields | None = None

    @property
    def fields(self) -> Fields:
        """The fields of the tuples here."""
        return self.node.fields

    def add(self, kind: type[N], /, **parts: Any) -> N:
        """Add a step behind this one."""
        return self.builder.add(kind, parents=(self.node,), **parts)


def _factory(call: str, given: object) -> StateFactory:
    if isinstance(given, StateFactory):
        return given
    if isinstance(given, str | StateURL):
        return _from_url(call, given)
    what = f"{call}: expected a StateFactory, its URL or a StateSpec, found"
    if isinstance(given, type):
        advice = "Pass an instance of it, such as MemoryMapState.Factory() or opaque(path)."
        raise OperationTypeError(what, f"the class {given.__qualname__}", (), advice)
    advice = (
        'Use MemoryMapState.Factory(), a URL such as "sqlite:counts.db", or a backend such as '
        "trident.backends.sqlite.opaque(…)."
    )
    found = operation_name(given) if isinstance(given, Operation) else described(given)
    raise OperationTypeError(what, found, (), advice)


def _from_url(call: str, url: str | StateURL) -> StateFactory:
    from trident.backends.urls import state_from_url  # most topologies use none

    try:
        return state_from_url(url)
    except StateURLError as error:
        what, *rest = error.args
        raise PlanError(f"{call}: {what}", *rest) from None


def _first_name(call: str, name: object) -> str | None:
    if name is None or (isinstance(name, str) and name):
        return name
    what = f"{call}: renamed_from= is the name that the state had before, found"
    raise OperationTypeError(what, described(name))


def _check_partitions(call: str, required: object) -> None:
    if required is not None and (type(required) is not int or required < 1):
        what = f"{call}: requiredNumPartitions is 1 or more, or None; found"
        raise PlanError(what, repr(required))


def _check_roots(node: Node, connected: Sequence[Connected]) -> None:
    """Refuse a query that joins another stream, or uses Spark unasked: it is answered for one
    request, and unless it says so in one process."""
    roots = node.roots
    queries = [root for root in roots if isinstance(root, DRPCNode)]
    frames = [root for root in roots if isinstance(root, StaticStreamNode)]
    call = node.origin.call
    if queries and len(roots) - len(frames) > 1:
        what = f"{call}: Cannot join DRPC stream with streams originating from other spouts"
        advice = "Let the stream update a state, and query that state with stateQuery()."
        raise PlanError(what, "", (), advice)
    if frames:
        _check_static(node, queries, connected)
    if queries and queries[0].engine == "spark":
        _check_on_spark(node)
        return
    if queries and isinstance(node, StateUpdateNode) and isinstance(node.updater, WindowUpdater):
        what = f"{call}: a DRPC stream has no windows, as a request is answered at once"
        raise PlanError(what, "", (), "Window a stream of newStream(), and query its state.")
    if queries and isinstance(node, NativeNode):
        what = f"{call}: a DRPC stream can't use Spark expressions, found"
        advice = 'Use a Python function or a built-in, or newDRPCStream(…, engine="spark").'
        raise PlanError(what, node.expression.label, (), advice)


def _check_static(node: Node, queries: Sequence[DRPCNode], connected: Sequence[Connected]) -> None:
    """Refuse a static stream anywhere but in one query that Spark answers."""
    call = node.origin.call
    asked = 'newDRPCStream(…, engine="spark")'
    if isinstance(node, StateUpdateNode):
        what = f"{call}: a static stream is read by queries, and updates no state"
        raise PlanError(what, "", (), "Stream its rows with newStream(), by a spout or readStream.")
    if any(isinstance(root, SourceNode) for root in node.roots):
        what = f"{call}: a static stream can be joined with {asked} only, found one of newStream()"
        advice = "Query a state: newStaticState() for what doesn't change."
        raise PlanError(what, "", (), advice)
    if queries and queries[0].engine != "spark":
        what = f"{call}: Spark reads static streams, and doesn't answer the function"
        raise PlanError(what, queries[0].function, (), f"Begin it with {asked}.")
    if sum(len(each.requests) for each in connected) > 1:
        what = f"{call}: a static stream belongs to one query, and this one belongs to another"
        raise PlanError(what, "", (), "Begin one more from the same DataFrame: it costs nothing.")


def _check_on_spark(node: Node) -> None:
    """Refuse what a query can't do whose jobs take long: update a state, or read two as of one
    moment."""
    call = node.origin.call
    if isinstance(node, StateUpdateNode):
        what = f"{call}: a query that Spark answers updates no state"
        raise PlanError(what, "", (), 'Leave out engine="spark", and give answers=.')
    if node.asks_updated is None and len(node.parents) < 2:
        return
    found = [each.asks_updated for each in ancestors(node)]
    asked = [each.state.name for each in found if each is not None]
    if len(asked) > 1:
        what = f"{call}: a query that Spark answers asks states in one step, as its jobs take long"
        advice = "Batches go on meanwhile, so that two steps would show two moments. Ask for one "
        advice += 'of them by another query, or leave out engine="spark".'
        raise PlanError(f"{what}; found", ", ".join(asked), (), advice)


def _check_shared_batches(node: Node, connected: Sequence[Connected]) -> None:
    """Refuse a step that joins streams which can't share batches: they have one clock, Structured
    Streaming or the loop over spouts, and as one streaming query one output mode."""
    call = node.origin.call
    sources = sorted((s for each in connected for s in each.sources), key=lambda s: s.stream_id)
    frames = [source.stream_id for source in sources if source.clock == "dataframe"]
    spouts = [source.stream_id for source in sources if source.clock == "spout"]
    if frames and spouts:
        what = (
            f"{call}: streaming DataFrames ({', '.join(frames)}) and spouts "
            f"({', '.join(spouts)}) can't share batches"
        )
        advice = "Make both streams of the same sort, or keep their states apart."
        raise PlanError(what, "", (), advice)
    if len({source.output_mode for source in sources}) > 1:
        modes = ", ".join(f"{source.stream_id}: {source.output_mode}" for source in sources)
        what = f"{call}: streams of several output modes ({modes}) can't share batches"
        advice = 'Give all of them the same outputMode= (the default is "append"), or keep their '
        raise PlanError(what, "", (), f"{advice}states apart.")
