"""What a query can fail with."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from trident.states.errors import TridentError


class DRPCError(TridentError):
    """The root of what ``execute`` raises."""


@dataclass(eq=False, repr=False)
class UnknownFunctionError(DRPCError):
    """The topology has no query of that name.

    Examples
    --------
    >>> raise UnknownFunctionError("wrods", ["words", "top"])
    Traceback (most recent call last):
    ...
    trident.drpc.errors.UnknownFunctionError: no DRPC function 'wrods'; there are: words, top.
    Did you mean 'words'?
    """

    function: str
    """What was asked for."""
    known: Sequence[str]
    """What there is."""

    def __post_init__(self) -> None:
        self.known = tuple(self.known)
        super().__post_init__()

    def __str__(self) -> str:
        text = f"no DRPC function {self.function!r}"
        if not self.known:
            return f"{text}: the topology has none. Declare one with newDRPCStream()."
        nearest = difflib.get_close_matches(str(self.function), self.known, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        return f"{text}; there are: {', '.join(self.known)}.{hint}"


class DRPCExecutionError(DRPCError):
    """A query failed; nothing was changed by it. ``__cause__`` is what it failed with.

    Parameters
    ----------
    function, args : str
        The request.
    cause : str
        What it failed with.
    """

    # No dataclass: `args` is also what an exception calls all that it was given.
    def __init__(self, function: str, args: str, cause: str) -> None:
        super().__init__(function, args, cause)

    def __str__(self) -> str:
        function, args, cause = self.args
        return f"{function}({args!r:.200}) failed: {cause}"


@dataclass(eq=False, repr=False)
class DRPCClosedError(DRPCError):
    """The run has been stopped, and its queries with it."""

    function: str
    """What was asked for."""

    _template = "{function!r} can't be answered any more: the run has been stopped"
