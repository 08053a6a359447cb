"""The errors of requests for states, besides those of `trident.drpc.errors`; each pickles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trident.drpc.errors import DRPCError
from trident.states.errors import UsageError


class StateServiceError(DRPCError):
    """The root of the errors of requests for states."""


@dataclass(eq=False, repr=False)
class UnknownStateError(StateServiceError):
    """No topology that is served has a state of that name.

    Examples
    --------
    >>> raise UnknownStateError("cuont", ["count", "total"])
    Traceback (most recent call last):
    ...
    trident.state_service.errors.UnknownStateError: there is no state 'cuont'; there are: count,
    total. Did you mean 'count'?
    """

    state: str
    """The name in the request."""
    states: Sequence[str]
    """The states that the caller may read."""

    def __post_init__(self) -> None:
        self.states = tuple(self.states)
        super().__post_init__()

    def __str__(self) -> str:
        if not self.states:
            return f"there is no state {self.state!r:.200}, and no other one"
        return str(UsageError("there is no state", self.state[:200], self.states))


@dataclass(eq=False, repr=False)
class StateLeftOutError(StateServiceError):
    """The state can't be shown."""

    state: str
    """Which one."""
    why: str
    """Why it can't."""

    _template = "the state {state!r} can't be read here: {why}"


@dataclass(eq=False, repr=False)
class NoSuchKeyError(StateServiceError):
    """The state has no value for the key, or its value is null."""

    state: str
    """Which state."""
    key: str | None
    """The key as JSON; None for the single value of a state without keys."""
    txid: int | None
    """The batch that the state was read at."""

    def __str__(self) -> str:
        of = "" if self.txid is None else f" as of batch {self.txid}"
        what = "value" if self.key is None else f"key {self.key:.200}"
        return f"the state {self.state!r} has no {what}{of}"


@dataclass(eq=False, repr=False)
class NoJSONError(StateServiceError):
    """A value has no form in JSON."""

    state: str
    """Which state."""
    key: str | None
    """The key as JSON; None for the single value of a state without keys."""
    found: str
    """The value, or the part of it, that JSON has no form for."""

    def __str__(self) -> str:
        of = "" if self.key is None else f" of the key {self.key:.200}"
        return (
            f"the state {self.state!r} holds{of} {self.found}, which has no form in JSON. Read it "
            "in Python, by state_from_url or a query."
        )


@dataclass(eq=False, repr=False)
class TooManyKeysError(StateServiceError):
    """A request asks for more keys than the server takes."""

    keys: int
    """How many."""
    limit: int
    """The most."""

    _template = "{keys} keys were asked for at once, and {limit} are the most. Ask several times."


@dataclass(eq=False, repr=False)
class AnswerTooLargeError(StateServiceError):
    """The values of a request are larger than an answer may be."""

    limit: int
    """The most, in bytes of JSON."""

    _template = "the answer would be over {limit} bytes, which is the most. Ask for fewer keys."
