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
    """By which the engine is given them: the stream's id, or the function that is called."""
    declared: Fields
    columns: Fields
    """Those that are read later, and `ORIGIN` where it is."""
    check: TypeCheckKernel | None
    """Checks what a spout emits."""
    origin: str | None
    """The origin of its tuples; None where they have none, as those of requests."""
    kept: bool
    """Whether its tuples are there, so that reading them twice makes nothing twice."""

    text = ""


@dataclass(frozen=True)
class Forward:
    """Tuples stay in their partition."""

    least: int | None = None
    """How many partitions there have to be; if there are fewer, tuples are dealt anew."""

    text = "forward"


@dataclass(frozen=True)
class ByKey:
    """The tuples of a key meet in one partition."""

    name: StepName
    """The step, for a key that can't be encoded."""
    key: tuple[str, ...]
    combine: AggregateKernel | None = None
    """What runs in each partition before, so that fewer tuples move."""
    stable: bool = True
    """Whether a key's partition is the same in every run and on every engine, as a state's is."""
    grouped: bool = False
    """Whether the tuples of a key are in one partition already, whichever that is; so they may
    stay where it needn't be stable."""

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
    """Whether they stay where there are as many partitions already."""

    @property
    def text(self) -> str:
        return "localOrShuffle" if self.settled else "shuffle"


@dataclass(frozen=True)
class Broadcast:
    """Each partition has every tuple."""

    text = "broadcast"


@dataclass(frozen=True)
class Chosen:
    """A grouping of the user's says into which partitions each tuple comes."""

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
    """How these are called in the stage."""

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
"""How tuples come into a stage; `text` is how explanations and drawings call it."""


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
    """Kernels that run one after the other: that of a step, and the check of what it makes."""

    kernels: tuple[Kernel, ...]


@dataclass(frozen=True, kw_only=True)
class LookUp(Step):
    """Tuples are looked up in one state, or in several at once."""

    row: QueryRow
    states: tuple[StateDeclaration, ...]
    """The states, one for each query of the row."""
    updated: tuple[bool, ...]
    """Whether the same batch updates it, so that it is read as it was before."""
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
    """The fields that the update takes, with their types as far as they are known."""
    on_driver: bool
    """Whether it is updated in the driver's process."""
    ordered: bool
    """Whether it takes its tuples in the order in which they were emitted."""
    keyed: bool
    """Whether an exchange before it was asked to bring a key's tuples together. Otherwise all
    tuples come into one partition."""


@dataclass(frozen=True, kw_only=True)
class NativeStep(Step):
    """An expression that Catalyst runs: appends fields, or keeps the tuples where it is true."""

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
    """The steps of the plan that it does, in their order; also those that do nothing themselves,
    as labels."""
    inputs: tuple[int, ...]
    """The stages whose output it takes, by place."""
    exchange: Exchange
    steps: tuple[Step, ...]
    columns: Fields
    """The fields of its output that are read later."""
    partitions: int | None
    """How many partitions it has; None where that follows from its input."""
    hint: int | None
    """The same as the topology says, by a hint or a state; None where it says nothing."""
    readers: int
    """How many stages take its output."""
    repeatable: bool
    """Whether its output is the same when it is made again."""

    @property
    def combines_first(self) -> bool:
        """Whether its first step is done in each partition before the exchange, too."""
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
