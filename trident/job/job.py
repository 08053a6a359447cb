"""A job: stages, how tuples come into each, and what runs in its partitions; all frozen data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from trident.kernels.aggregate_kernels import AggregateKernel
from trident.kernels.grouping_kernel import GroupingKernel
from trident.kernels.join_kernel import JoinKernel
from trident.kernels.kernel import Kernel
from trident.kernels.query_row import QueryRow
from trident.kernels.task import StepName
from trident.kernels.type_check import TypeCheckKernel
from trident.kernels.update_kernel import UpdateKernel
from trident.operations.callables import Native
from trident.operations.interfaces import CombinerAggregator, operation_name
from trident.plan.nodes import StateDeclaration
from trident.tuples.fields import Fields

# How tuples come into a stage.


@dataclass(frozen=True)
class Source:
    """Tuples begin here: the engine is given them."""

    name: StepName
    stream: str
    """The key under which the engine is given them: the stream's id, or the called function."""
    declared: Fields
    columns: Fields
    """The fields that are read later, perhaps with `ORIGIN`."""
    check: TypeCheckKernel | None
    """Checks the values that a spout emits."""
    origin: str | None
    """The origin of its tuples; None if they have none, as those of requests."""
    kept: bool
    """Whether its tuples are kept, so that reading them twice makes nothing twice."""

    text = ""


@dataclass(frozen=True)
class Forward:
    """Tuples stay in their partition."""

    least: int | None = None
    """The least number of partitions; if there are fewer, tuples are dealt anew."""

    text = "forward"


@dataclass(frozen=True)
class ByKey:
    """The tuples of a key meet in one partition."""

    name: StepName
    """The step, for a key that can't be encoded."""
    key: tuple[str, ...]
    combine: AggregateKernel | None = None
    """Runs in each partition first, so that fewer tuples move."""
    stable: bool = True
    """Whether a key's partition is the same in every run and on every engine, as a state's is."""
    grouped: bool = False
    """Whether the tuples of a key are in one partition already. If this needn't be stable, they may
    stay there."""

    @property
    def text(self) -> str:
        return f"by {', '.join(self.key)}{', if not yet' if self.grouped else ''}"


@dataclass(frozen=True)
class Gather:
    """All tuples come into one partition."""

    name: StepName
    combine: AggregateKernel | None = None
    on_driver: bool = False
    """Whether that partition is in the driver's process."""

    @property
    def text(self) -> str:
        return "to the driver" if self.on_driver else "to one partition"


@dataclass(frozen=True)
class Spread:
    """Tuples are dealt to the partitions in turn."""

    settled: bool
    """Whether they stay if there are as many partitions already."""

    @property
    def text(self) -> str:
        return "localOrShuffle" if self.settled else "shuffle"


@dataclass(frozen=True)
class Broadcast:
    """Each partition has every tuple."""

    text = "broadcast"


@dataclass(frozen=True)
class Chosen:
    """A grouping of the user's chooses the partitions of each tuple."""

    kernel: GroupingKernel

    @property
    def text(self) -> str:
        return f"by {operation_name(self.kernel.operation)}"


@dataclass(frozen=True)
class Union:
    """The tuples of several inputs."""

    columns: tuple[tuple[str, ...], ...]
    """For each input the fields that become those of the stage, in their order."""
    names: tuple[str, ...]
    """Their names in the stage."""

    text = "union"


@dataclass(frozen=True)
class Join:
    """The tuples of several inputs that have equal keys, put together."""

    kernel: JoinKernel

    @property
    def text(self) -> str:
        return f"by {' = '.join(dict.fromkeys(map(', '.join, self.kernel.keys)))}"


@dataclass(frozen=True)
class DeadLetters:
    """The tuples that steps of all stages before have failed with."""

    text = "dead letters"


Exchange = (
    Source | DeadLetters | Forward | ByKey | Gather | Spread | Broadcast | Chosen | Union | Join
)
"""How tuples come into a stage; `text` is its name in explanations and drawings."""


# What runs in a stage's partitions.


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is done with the tuples of a partition."""

    ids: tuple[int, ...]
    """The steps of the plan that it does."""
    name: StepName
    """The step of the plan, for errors."""
    makes: Fields
    """The fields whose values it makes."""
    columns: Fields
    """The fields of its output that are read later."""
    deterministic: bool = True
    """Whether it makes the same when it runs again."""


@dataclass(frozen=True, kw_only=True)
class Kernels(Step):
    """Kernels that run one after the other: that of a step, and the check of its output."""

    kernels: tuple[Kernel, ...]


@dataclass(frozen=True, kw_only=True)
class LookUp(Step):
    """Tuples are looked up in one state, or in several at once."""

    row: QueryRow
    states: tuple[StateDeclaration, ...]
    """The states, one for each query of the row."""
    updated: tuple[bool, ...]
    """For each state, whether the same batch updates it, so that it is read as it was before."""
    on_driver: bool
    """Whether the states are asked in the driver's process."""

    @property
    def is_urgent(self) -> bool:
        """Whether the states have to be asked before the batch updates them."""
        return any(self.updated) and not self.deterministic


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """A state is updated; nothing follows in its stage but its new values."""

    kernel: UpdateKernel
    state: StateDeclaration
    reads: Fields
    """The fields that the update reads, with the types that are known."""
    on_driver: bool
    """Whether it is updated in the driver's process."""
    ordered: bool
    """Whether it needs its tuples in the order in which they were emitted."""
    keyed: bool
    """Whether an exchange before it was asked to bring a key's tuples together. Otherwise all
    tuples come into one partition."""


@dataclass(frozen=True, kw_only=True)
class NativeStep(Step):
    """An expression that Catalyst runs: appends fields, or keeps the tuples that make it true."""

    expression: Native


@dataclass(frozen=True, kw_only=True)
class NativeAggregate(Step):
    """An aggregate that Catalyst runs, which moves its groups itself."""

    group: tuple[str, ...]
    inputs: tuple[str, ...]
    aggregator: CombinerAggregator[object]
    """One of the library's."""
    stays: bool
    """Whether its groups may stay in fewer partitions than the stage has."""


@dataclass(frozen=True)
class Stage:
    """Steps that run one after the other in each partition."""

    id: int
    """Its place in the job."""
    ids: tuple[int, ...]
    """The steps of the plan that it does, in their order, with those that do nothing, as labels."""
    inputs: tuple[int, ...]
    """The places of the stages whose output it takes."""
    exchange: Exchange
    steps: tuple[Step, ...]
    columns: Fields
    """The fields of its output that are read later."""
    partitions: int | None
    """How many partitions it has; None if that follows from its input."""
    hint: int | None
    """The number that the topology asks for, by a hint or a state; None if it asks for none."""
    readers: int
    """How many stages take its output."""
    repeatable: bool
    """Whether its output is the same when it is made again."""

    @property
    def combines_first(self) -> bool:
        """Whether its first step is also done in each partition before the exchange."""
        if not isinstance(self.exchange, ByKey | Gather):
            return False
        native = bool(self.steps) and isinstance(self.steps[0], NativeAggregate)  # as Catalyst does
        return native or self.exchange.combine is not None

    @property
    def update(self) -> Update | None:
        """The update of a state with which it ends."""
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, Update) else None


@dataclass(frozen=True)
class Job:
    """What is done for a batch or a request."""

    stages: tuple[Stage, ...]
    """In the order in which they run: states are read before they are updated."""
    result: int | None = None

    @cached_property
    def updates(self) -> tuple[Update, ...]:
        """The updates of states, in the order in which they run."""
        return tuple([step for step in self.steps if isinstance(step, Update)])

    @property
    def steps(self) -> Iterator[Step]:
        """All steps, stage by stage."""
        return (step for stage in self.stages for step in stage.steps)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Where its streams begin."""
        found = [stage.exchange for stage in self.stages]
        return tuple([each for each in found if isinstance(each, Source)])

    def source(self, stream: str) -> Source:
        """Where a stream begins."""
        return next(each for each in self.sources if each.stream == stream)

    def beginning(self, stream: str) -> Stage:
        """The stage with which a stream begins."""
        return next(stage for stage in self.stages if stage.exchange is self.source(stream))
