"""What can go wrong with state: each error says what, what was found, and the next step.

Every error keeps its raw arguments in ``args`` and builds its text in ``__str__``, so that it
crosses process borders by pickle unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from trident.states.values import Token

_SHOWN = 10
"""How many of several names an error lists, the nearest first."""


class TridentError(Exception):
    """The root of every error this library raises on purpose."""


class FailedException(TridentError):
    """Fails the current attempt; the batch is then retried, as often as ``retries`` allows.

    Raise it, or a subclass, from any function, aggregator or backing map; where something can't be
    reached, which is not the batch's fault, a :class:`StateUnavailableError`. Every other
    exception stops the run.

    Examples
    --------
    >>> raise FailedException("the geo service timed out")
    Traceback (most recent call last):
    ...
    trident.states.errors.FailedException: the geo service timed out
    """


class StateUnavailableError(FailedException):
    """The store can't be reached now, or gave no certain answer; the batch waits for it.

    It is tried again for as long as ``patience`` allows, and counts toward no ``retries``. A query
    fails with it at once.

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


def _placed(state: str, where: str) -> str:
    return f"{state} in {where}" if where else state


def _accepting(state: str, lost: Token) -> str:
    """What goes on without the writes that a store has lost."""
    return (
        f"accept the loss, and go on with what the store holds, with "
        f"accept_loss={{{state!r}: {lost.txid}}}; or begin anew with an empty store and a new "
        "checkpoint."
    )


class LostStateError(StateError):
    """A state that the log knows has no control record any more.

    Parameters
    ----------
    state : str
        The state's name.
    listed : Token
        The last committed attempt that had begun it.
    where : str
        Where the state is, if the store says that.
    lasts : bool
        Whether its store outlives the process.
    """

    def __init__(self, state: str, listed: Token, where: str = "", lasts: bool = True) -> None:
        super().__init__(state, listed, where, lasts)

    def __str__(self) -> str:
        state, listed, where, lasts = self.args
        if not lasts:
            return (
                f"state {_placed(state, where)} is lost: it was in memory, and ended with its "
                f"process or its Factory, but the log says that batch {listed.txid} was stored "
                "there. Keep it in a store that lasts, such as 'sqlite:counts.db', or start "
                f"without a checkpoint. Nothing brings it back: {_accepting(state, listed)}"
            )
        return (
            f"state {_placed(state, where)} is lost: the log says that batch {listed.txid} was "
            "stored there, but the store holds no control record. Restore the store from a backup "
            f"that is at least as new; or {_accepting(state, listed)}"
        )


class NoStateError(StateError):
    """A reader found no control record, so no state has begun there: perhaps a mistyped place.

    Parameters
    ----------
    where : str
        The store; empty where it has no name.
    prefix : str or None
        What the reader was opened with; None where the store knows no prefixes.
    others : sequence of str
        Prefixes of states that are there, as far as was looked.
    """

    def __init__(self, where: str, prefix: str | None, others: Sequence[str] = ()) -> None:
        super().__init__(where, prefix, tuple(others))

    def __str__(self) -> str:
        where, prefix, others = self.args
        place = f" in {where}" if where else ""
        named = there = ""
        if prefix is not None:
            named = f" with the prefix {prefix!r}" if prefix else " without a prefix"
            near = get_close_matches(prefix, others, _SHOWN)
            listed = [*near, *(other for other in others if other not in near)]
            found = ", ".join(map(repr, listed[:_SHOWN])) or "none that a short look finds"
            found += f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            there = (
                f" States there have the prefixes: {found}. Give it with prefix=; that of a "
                "topology's state is the state's name, unless its URL or factory says otherwise."
            )
        return (
            f"there is no state{named}{place}, or it has not begun.{there} A state is there from "
            "the first start of its topology on; one that is updated without a topology, from its "
            "first beginCommit. State that Storm wrote, and no topology has taken over, is read "
            "with written_by=storm."
        )


class UnownedStateError(StateError):
    """Something is where a state is to begin, and no control record tells whose it is.

    Parameters
    ----------
    state : str
        The state's name or place.
    found : str
        What is there.
    """

    def __init__(self, state: str, found: str) -> None:
        super().__init__(state, found)

    def __str__(self) -> str:
        state, found = self.args
        return (
            f"state {state} can't begin: there is {found} already, and no control record. Where "
            "Storm wrote it, start with a new checkpoint and adopt={'base': <txid>}: of opaque "
            "state the last batch that Storm committed, of transactional state the highest txid "
            "among the values, of plain values any number from 1 (docs/protocol.md, \"Storm's "
            'state"). Otherwise give the state another prefix, or remove what is there; if its '
            "control record was lost, restore the store from a backup."
        )


class RewoundStateError(StateError):
    """The store went back to an older moment than the log's.

    Parameters
    ----------
    state : str
        The state's name.
    found, listed : Token
        The token in the control record, and the last committed attempt that had begun the state.
    where : str
        Where the state is, if the store says that.
    """

    def __init__(self, state: str, found: Token, listed: Token, where: str = "") -> None:
        super().__init__(state, found, listed, where)

    def __str__(self) -> str:
        state, found, listed, where = self.args
        return (
            f"state {_placed(state, where)} was rewound: it holds {_shown(found)}, but "
            f"{_shown(listed)} was stored and committed there. Restore the store from a newer "
            f"backup; or {_accepting(state, listed)}"
        )


class LostWritesError(StateError):
    """The store lost the end of what it had confirmed of a batch that is committed.

    Parameters
    ----------
    state : str
        The state's name.
    token : Token
        The committed attempt some of whose writes may be gone.
    where : str
        Where the state is, if the store says that.
    """

    def __init__(self, state: str, token: Token, where: str = "") -> None:
        super().__init__(state, token, where)

    def __str__(self) -> str:
        state, token, where = self.args
        return (
            f"state {_placed(state, where)} lost writes of batch {token.txid}, which is committed: "
            "the store had confirmed them, and holds the batch as begun only. It started from old "
            "data, or another server took over without them; see its log. Restore the store from "
            f"a backup made after that batch; or {_accepting(state, token)}"
        )


class CopiedLogError(StateError):
    """A state was changed by another copy of this checkpoint.

    Parameters
    ----------
    state : str
        The state's name.
    found : Token
        The token in its control record.
    committed : int
        The last batch that this log has committed.
    where : str
        Where the state is, if the store says that.
    """

    def __init__(self, state: str, found: Token, committed: int, where: str = "") -> None:
        super().__init__(state, found, committed, where)

    def __str__(self) -> str:
        state, found, committed, where = self.args
        return (
            f"state {_placed(state, where)} was changed by another copy of this checkpoint: it "
            f"holds {_shown(found)}, which this log, whose last committed batch is {committed}, "
            "has not begun. Either the checkpoint was copied and both copies have run, or it was "
            "restored from an older backup than the store. Go on with the copy that ran last and "
            "delete the other; or restore checkpoint and store from backups of one moment; or "
            "give this one a prefix of its own and begin anew with a new checkpoint."
        )


def _shown(token: Token) -> str:
    return f"batch {token.txid} (attempt {token.attempt})"


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
