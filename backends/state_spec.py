"""What may stand for a state where a topology declares one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trident.backends.state_url import StateURL
from trident.states.state import StateFactory


@dataclass(frozen=True)
class StateSpec:
    """A factory, and further properties of its state.

    Parameters
    ----------
    stateFactory : StateFactory, StateURL or str
        Makes the state, or is the state's URL.
    requiredNumPartitions : int or None
        None leaves the number to the topology.
    name : str or None
        The state's name; None leaves it to the topology.
    renamed_from : str or None
        The first name of a state that has another name now: its checkpoint and its store keep that
        name.
    schema_version, upgrade : int, callable
        The version of the form that values have now, and a function that makes this form of an
        earlier one: see :class:`~trident.states.ValueSchema`. By default the operation says both.

    Examples
    --------
    >>> StateSpec("sqlite:shop.db", name="turnover", renamed_from="sales").renamed_from
    'sales'
    """

    stateFactory: StateFactory | StateURL | str
    requiredNumPartitions: int | None = None
    name: str | None = None
    renamed_from: str | None = None
    schema_version: int | None = None
    upgrade: Callable[[Any, int], Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.stateFactory, str):  # a str would show its password
            object.__setattr__(self, "stateFactory", StateURL.parse(self.stateFactory))


StateLike = StateFactory | StateSpec | StateURL | str
"""What may stand for a state where one is declared; a str is its URL."""
