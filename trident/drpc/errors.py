"""The errors of queries; each pickles, and crosses HTTP and Thrift as itself."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from trident.states.errors import TridentError, UsageError


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
    """The function of the request."""
    known: Sequence[str]
    """What there is."""

    def __post_init__(self) -> None:
        self.known = tuple(self.known)
        super().__post_init__()

    def __str__(self) -> str:
        text = f"no DRPC function {self.function!r:.200}"
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
    summary : str
        The same in a line for clients: of a user's exception the message and the step, without any
        frames. By default the cause.
    """

    # No dataclass: `args` is also what an exception calls all that it was given.
    def __init__(self, function: str, args: str, cause: str, summary: str = "") -> None:
        super().__init__(function, args, cause, summary)

    @property
    def function(self) -> str:
        """The function of the request."""
        function: str = self.args[0]
        return function

    @property
    def summary(self) -> str:
        """What it failed with, in a line."""
        _, _, cause, summary = self.args
        text: str = summary or cause
        return text

    def __str__(self) -> str:
        function, args, cause, _ = self.args
        # Where the cause is at hand Python shows it too, with the lines that failed.
        shown = cause if self.__cause__ is None else self.summary
        return f"{function}({args!r:.200}) failed: {shown}"


class DRPCUnavailableError(DRPCExecutionError):
    """A store that is read is away, or a state has not begun; ask again later."""


class StateNotThereError(DRPCUnavailableError):
    """A state that is read has not begun, or is missing in its store; ask again later."""


class DRPCInternalError(DRPCExecutionError):
    """A state can't be read, or the library failed; the caller can't do anything about it."""


@dataclass(eq=False, repr=False)
class DRPCTimeoutError(DRPCError, TimeoutError):
    """No answer came in time; the call has left the queue.

    Examples
    --------
    >>> str(DRPCTimeoutError("words", 5.004, 12))
    "'words' was not answered within 5.00 s, with 12 more calls in the queue. Ask again, give more
    time with timeout=, or ask less at once."
    """

    function: str
    """The function of the request."""
    elapsed: float
    """How many seconds the call has waited."""
    waiting: int
    """How many calls of the function were in the queue then."""

    _template = (
        "{function!r} was not answered within {elapsed:.2f} s, with {waiting} more calls in the "
        "queue. Ask again, give more time with timeout=, or ask less at once."
    )


@dataclass(eq=False, repr=False)
class DRPCQueueFullError(DRPCError):
    """Too many calls wait already; this one was refused."""

    function: str
    """The function of the request."""
    waiting: int
    """How many calls of the function wait."""

    _template = "{function!r} has {waiting} calls in its queue, and takes no more. Ask again later."


@dataclass(eq=False, repr=False)
class DRPCClosedError(DRPCError):
    """The run has been stopped, and its queries with it."""

    function: str
    """The function of the request."""

    _template = "{function!r} can't be answered any more: the run has been stopped"


@dataclass(eq=False, repr=False)
class DRPCElsewhereError(DRPCError):
    """The function updates a state, and the run that does so is in another process."""

    function: str
    """The function of the request."""

    _template = (
        "{function!r} updates a state, so the process of the run alone answers it, not this one. "
        "Ask the server of run.serve()."
    )


@dataclass(eq=False, repr=False)
class ArgumentsTooLargeError(DRPCError):
    """The arguments of a call are larger than the server takes."""

    function: str
    """The function of the request."""
    limit: int
    """The most, in bytes of UTF-8."""

    _template = "the arguments of {function!r} are over {limit} bytes, which is the most"


@dataclass(eq=False, repr=False)
class MalformedRequestError(DRPCError):
    """The request is invalid."""

    problem: str
    """What is wrong with it."""

    _template = "the request can't be read: {problem}"


@dataclass(eq=False, repr=False)
class DRPCAccessError(DRPCError):
    """The server doesn't answer the function to the caller."""

    function: str
    """The function of the request."""
    user: str | None = None
    """Who has the token; None without a token that the server knows."""

    def __str__(self) -> str:
        if self.user is None:
            return f"{self.function!r} needs a token that this server knows. Pass token=."
        return f"{self.user!r} may not call {self.function!r}. Ask whoever runs the server."


@dataclass(eq=False, repr=False)
class AnswerLostError(DRPCError):
    """A call was sent, and the connection ended without an answer: the function may have run.

    A client repeats only calls to servers that apply a request once by its id.
    """

    function: str
    """The function of the request."""
    problem: str
    """The problem, as ``host:port: problem``."""

    _template = (
        "the answer of {function!r} was lost ({problem}), so it may have run. Storm's servers run "
        "what is asked again a second time: ask again where that does no harm."
    )


@dataclass(eq=False, repr=False)
class NoServerError(DRPCError):
    """A client could reach none of its servers."""

    problems: str
    """The problem of each server, as ``host:port: problem``."""

    _template = (
        "no DRPC server answers: {problems}. Is it running, and is that its port? By default HTTP "
        "is on 3774, and Thrift, thrift://host:port, on 3772."
    )


class DRPCUsageError(UsageError):
    """A server or client was given an argument that it can't use; nothing was started."""
