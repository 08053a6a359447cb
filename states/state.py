"""A state, what makes one, and how many partitions it asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from trident.states.control import Control, ControlRecord
from trident.states.errors import StateError
from trident.states.urls import StateURL
from trident.states.values import Token

Batch = int | Token | ControlRecord
"""What a state is begun with.

An int for use without a topology: the state then keeps its control record itself. A Token of a
batch that was begun elsewhere: the record is read from the store. A ControlRecord, shipped with
the task: nothing is read.
"""


class State(ABC):
    """Something that batches change, and queries read.

    Made by a :class:`StateFactory` once a partition in the process that updates it, and once in
    each process that queries it. Used by one thread at a time.
    """

    control: Control | None = None
    """The state's control record; None where the state has none and so can't be exact."""

    @abstractmethod
    def beginCommit(self, batch: Batch) -> None:
        """Begin the updates of one attempt of a batch; what was pending before is dropped."""

    @abstractmethod
    def commit(self, batch: Batch) -> None:
        """Write the updates since ``beginCommit(batch)``.

        The batch itself is committed by the topology's log; with an int, by this call.
        """

    def close(self) -> None:  # noqa: B027 - most states have nothing to close
        """Let go of connections; may be called twice. The default has none."""


class ReadOnlyState(State):
    """A state that can only be queried."""

    def beginCommit(self, batch: Batch) -> NoReturn:
        raise _read_only()

    def commit(self, batch: Batch) -> NoReturn:
        raise _read_only()


def _read_only() -> StateError:
    return StateError("this state is read-only; query it, and update the state it is a view of")


class StateFactory(ABC):
    """Makes a state; must pickle, because tasks make their own."""

    @abstractmethod
    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> State:
        """Return the state of one partition; called once a partition and process."""


@dataclass(frozen=True)
class StateSpec:
    """A factory, and the number of partitions its state must have.

    Parameters
    ----------
    stateFactory : StateFactory, StateURL or str
        Makes the state, or is the URL of what does.
    requiredNumPartitions : int or None
        None leaves the number to the topology.
    name : str or None
        The state's name; None leaves it to the topology.
    """

    stateFactory: StateFactory | StateURL | str
    requiredNumPartitions: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.stateFactory, str):  # which would show its password
            object.__setattr__(self, "stateFactory", StateURL.parse(self.stateFactory))


StateLike = StateFactory | StateSpec | StateURL | str
"""What may stand for a state where one is declared; a str is its URL."""
