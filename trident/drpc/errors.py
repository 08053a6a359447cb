"""What a query can fail with."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from trident.states.errors import TridentError


class DRPCError(TridentError):
    """The root of what ``execute`` raises."""


class UnknownFunctionError(DRPCError):
    """The topology has no query of that name.

    Parameters
    ----------
    function : str
        What was asked for.
    known : sequence of str
        What there is.

    Examples
    --------
    >>> raise UnknownFunctionError("wrods", ["words", "top"])
    Traceback (most recent call last):
    ...
    trident.drpc.errors.UnknownFunctionError: no DRPC function 'wrods'; there are: words, top.
    Did you mean 'words'?
    """

    def __init__(self, function: str, known: Sequence[str]) -> None:
        super().__init__(function, tuple(known))

    def __str__(self) -> str:
        function, known = self.args
        if not known:
            return (
                f"no DRPC function {function!r}: the topology has none. "
                "Declare one with newDRPCStream()."
            )
        nearest = difflib.get_close_matches(str(function), known, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        return f"no DRPC function {function!r}; there are: {', '.join(known)}.{hint}"


class DRPCExecutionError(DRPCError):
    """A query failed; nothing was changed by it. ``__cause__`` is what it failed with.

    Parameters
    ----------
    function, args : str
        The request.
    cause : str
        What it failed with.
    """

    def __init__(self, function: str, args: str, cause: str) -> None:
        super().__init__(function, args, cause)

    def __str__(self) -> str:
        function, args, cause = self.args
        return f"{function}({args!r:.200}) failed: {cause}"


class DRPCClosedError(DRPCError):
    """The run has been stopped, and its queries with it.

    Parameters
    ----------
    function : str
        What was asked for.
    """

    def __init__(self, function: str) -> None:
        super().__init__(function)

    def __str__(self) -> str:
        return f"{self.args[0]!r} can't be answered any more: the run has been stopped"
