"""What can go wrong with state: each error says what, what was found, and the next step.

Every error keeps its raw arguments in ``args`` and builds its text in ``__str__``, so that it
crosses process borders by pickle unchanged.
"""

from __future__ import annotations

from trident.states.values import Token


class TridentError(Exception):
    """The root of every error this library raises on purpose."""


class FailedException(TridentError):
    """Fails the current attempt; the batch is then retried as its next attempt.

    Raise it, or a subclass, from any function, aggregator or backing map. Every other exception
    stops the run.

    Examples
    --------
    >>> raise FailedException("the geo service timed out")
    Traceback (most recent call last):
    ...
    trident.states.errors.FailedException: the geo service timed out
    """


class StateUnavailableError(FailedException):
    """The store can't be reached now, or gave no certain answer; the attempt fails.

    Parameters
    ----------
    state : str
        Which store: host and port or path, never a password.
    problem : str
        What was found.
    advice : str
        The next step.
    """

    def __init__(self, state: str, problem: str, advice: str = "") -> None:
        super().__init__(state, problem, advice)

    def __str__(self) -> str:
        state, problem, advice = self.args
        return f"{state}: {problem}." + (f" {advice}" if advice else "")


class StateError(TridentError):
    """State is not what the protocol requires; the run stops and nothing was written."""


class StaleBatchError(StateError):
    """This attempt was overtaken by a later one; it wrote nothing and must not be retried.

    Parameters
    ----------
    own : Token or None
        The token of the attempt that was refused; None where it never had begun.
    found : Token or None
        The later token that the state holds; None where only the refusal is known.
    """

    def __init__(self, own: Token | None, found: Token | None = None) -> None:
        super().__init__(own, found)

    def __str__(self) -> str:
        own, found = self.args
        attempt = f"attempt {own.attempt} of batch {own.txid}" if own else "this attempt"
        later = (
            f"the state already holds attempt {found.attempt} of batch {found.txid}"
            if found
            else "the state has moved on"
        )
        return (
            f"{attempt} was overtaken: {later}. It changed nothing. "
            "If another run of this topology is alive, stop one of the two."
        )


class LineageError(StateError):
    """The state belongs to another log.

    Parameters
    ----------
    state : str
        The state's name or place.
    found, expected : str
        The lineage in the state's control record, and the log's own.
    """

    def __init__(self, state: str, found: str, expected: str) -> None:
        super().__init__(state, found, expected)

    def __str__(self) -> str:
        state, found, expected = self.args
        return (
            f"state {state} belongs to another checkpoint: its lineage is {found}, this "
            f"checkpoint's is {expected}. To continue that state here, start with "
            "adopt=<path of the old checkpoint>, or where that is gone "
            f"adopt={{'lineage': '{found}', 'in_flight': 'committed' or 'burn'}}; to begin anew, "
            "give the state another name or empty its store (in memory: make a new Factory)."
        )


class LostStateError(StateError):
    """A state that the log knows has no control record any more.

    Parameters
    ----------
    state : str
        The state's name or place.
    listed : Token
        The token of the last committed batch that had begun it.
    """

    def __init__(self, state: str, listed: Token) -> None:
        super().__init__(state, listed)

    def __str__(self) -> str:
        state, listed = self.args
        return (
            f"state {state} is lost: the log says that batch {listed.txid} was stored there, but "
            "the store holds no control record. Restore the store from a backup that is at least "
            "as new, or begin anew with an empty store and a new checkpoint."
        )


class RewoundStateError(StateError):
    """The store went back to an older moment than the log's.

    Parameters
    ----------
    state : str
        The state's name or place.
    found, listed : Token
        The token in the control record, and the one that the log knows was there.
    """

    def __init__(self, state: str, found: Token, listed: Token) -> None:
        super().__init__(state, found, listed)

    def __str__(self) -> str:
        state, found, listed = self.args
        known = f"batch {listed.txid} (attempt {listed.attempt})"
        held = f"batch {found.txid} (attempt {found.attempt})"
        return (
            f"state {state} was rewound: it holds {held}{' as under way' * (found == listed)}, "
            f"but {known} was stored and committed there. "
            "Restore the store from a newer backup, or begin anew with an empty store and a new "
            "checkpoint."
        )


class LostWritesError(StateError):
    """The store failed over between its confirmation of a batch and the batch's announcement.

    Parameters
    ----------
    state : str
        The state's name or place.
    token : Token
        The committed attempt whose writes may be gone.
    """

    def __init__(self, state: str, token: Token) -> None:
        super().__init__(state, token)

    def __str__(self) -> str:
        state, token = self.args
        return (
            f"state {state}: the store restarted, or another server took over, right after it had "
            f"confirmed batch {token.txid}, which is committed; what it acknowledged may be lost. "
            "If this store keeps every acknowledged write (see its log, and its settings for "
            "durability), start again; otherwise restore it from a backup, or begin anew with an "
            "empty store and a new checkpoint."
        )


class CorruptStateError(StateError):
    """What the store holds can't be read.

    Parameters
    ----------
    what : str
        What was being read.
    found : str
        The beginning of what was found, or the reader's complaint.
    advice : str
        The next step.
    """

    def __init__(self, what: str, found: str, advice: str = "") -> None:
        super().__init__(what, found, advice)

    def __str__(self) -> str:
        what, found, advice = self.args
        return f"{what} can't be read: {found}." + (f" {advice}" if advice else "")


class SerializationError(StateError):
    """A key or value would not come back equal and of the same type.

    Parameters
    ----------
    what : str
        ``"key"`` or ``"value"``.
    found : str
        The offending type or value, shortened.
    allowed : str
        What may be stored, and the next step.
    """

    def __init__(self, what: str, found: str, allowed: str) -> None:
        super().__init__(what, found, allowed)

    def __str__(self) -> str:
        what, found, allowed = self.args
        return f"a {what} can't be stored: found {found}. {allowed}"


class LongOverflowError(TridentError, ArithmeticError):
    """An integer left the 64 bits that stores and Spark keep.

    Parameters
    ----------
    what : str
        Which operation, or the value of which key.
    value : int
        What it would have become.

    Notes
    -----
    No OverflowError: what SQLite calls while it runs a statement would be reported as another.
    """

    def __init__(self, what: str, value: int) -> None:
        super().__init__(what, value)

    def __str__(self) -> str:
        what, value = self.args
        return (
            f"{what}: {value} does not fit into 64 bits. "
            "Sum doubles instead, or keep the sum in several keys."
        )
