"""The errors of states. Each says what is wrong, what was found, and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import ClassVar

from trident.states.printable import masked, printable
from trident.states.values import Token

DROPPING = "being-dropped"
"""Follows `UNFINISHED` in the log id of a state while it is being removed."""

_SHOWN = 10
"""How many names an error lists, the nearest first."""


@dataclass(init=False, eq=False, repr=False)
class TridentError(Exception):
    """The root of every error this library raises on purpose.

    A subclass without fields takes a text, as any exception does. One with fields is a dataclass:
    ``args`` are its fields, so it pickles unchanged, and its text is made when it is shown: by
    `_template`, or by its own ``__str__`` if the words depend on the fields.
    """

    _template: ClassVar[str] = ""
    """The text, with the names of the fields in braces."""
    passing: ClassVar[bool] = False
    """Whether the same call may succeed later, with nothing changed in the program."""

    def __post_init__(self) -> None:
        self.args = tuple(getattr(self, field.name) for field in fields(self))

    def __init_subclass__(cls) -> None:
        """Keep control characters out of the texts of errors, whatever they quote."""
        super().__init_subclass__()
        if "__str__" in vars(cls):
            made = cls.__str__
            cls.__str__ = lambda self: printable(made(self))  # type: ignore[method-assign]

    def __str__(self) -> str:
        made = self._template.format_map(vars(self)) if self._template else super().__str__()
        return printable(made)


class FailedException(TridentError):
    """Fails the current attempt; the batch is then retried, as often as ``retries`` allows.

    Raise it, or a subclass, from any function, aggregator or backing map. If something can't be
    reached, which is not the batch's fault, raise a :class:`StateUnavailableError`. Every other
    exception stops the run.

    Examples
    --------
    >>> raise FailedException("the geo service timed out")
    Traceback (most recent call last):
    ...
    trident.states.errors.FailedException: the geo service timed out
    """


@dataclass(eq=False, repr=False)
class UnavailableError(FailedException):
    """Something that a batch needs can't be reached: the batch is not at fault, and waits.

    It is tried again for as long as ``patience`` allows; that doesn't count toward ``retries``.
    Raise the subclass for the thing that is away.

    Parameters
    ----------
    place : str
        The host and port, or the path; for a source also stream and partition; never a password.
    problem : str
        What was found.
    advice : str
        The next step.
    """

    place: str
    problem: str
    advice: str = ""

    passing: ClassVar[bool] = True

    def __str__(self) -> str:
        text = f"{self.place}: {self.problem}."
        return f"{text} {self.advice}" if self.advice else text


class StateUnavailableError(UnavailableError):
    """The store can't be reached now, or gave no certain answer; the batch waits for it.

    A query fails with it at once. The parameters are those of :class:`UnavailableError`.
    """


@dataclass(eq=False, repr=False)
class MissingDriverError(TridentError, ImportError):
    """The driver of a store or a source is not installed, or can't be imported."""

    what: str
    """The store or source."""
    extra: str
    """The extra of this package that installs the driver."""
    problem: str = ""
    """The error of the import."""

    def __str__(self) -> str:
        found = f" that can't be imported ({self.problem})" if self.problem else ""
        return f'{self.what} needs a driver{found}: pip install "trident-spark[{self.extra}]"'


class StateError(TridentError):
    """State is not what the protocol requires; the run stops and nothing was written."""


@dataclass(eq=False, repr=False)
class StaleBatchError(StateError):
    """This attempt was overtaken by a later one; it wrote nothing and must not be retried."""

    own: Token | None
    """The token of the refused attempt; None if it never had begun."""
    found: Token | None = None
    """The later token that the state holds; None if only the refusal is known."""

    def __str__(self) -> str:
        own, found = self.own, self.found
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


@dataclass(eq=False, repr=False)
class OtherLogError(StateError):
    """The state belongs to another log."""

    state: str
    """The state's name or place."""
    found: str
    """The log id in the state's control record."""
    expected: str
    """The log's own."""
    prefix: str | None = None
    """The state's prefix, if that isn't its name."""
    removal: str = ""
    """How to remove the state, if no command does."""

    def __str__(self) -> str:
        moved, removal = "", self.removal
        removal = removal or "python -m trident state drop URL (in memory: make a new Factory)"
        if self.prefix is not None and not self.removal:
            moved = (
                f"It has the prefix {self.prefix!r}. If it was built anew under that prefix "
                "(python -m trident rebuild), readers use it: start with the checkpoint that has "
                "built it, and drop nothing with that prefix. "
            )
        return (
            f"state {self.state} belongs to another checkpoint: its log id is {self.found}, this "
            f"checkpoint's is {self.expected}. {moved}If a run of that checkpoint is alive, stop "
            "it. To continue that state, start with that checkpoint, or here with "
            "adopt=Adopt.from_checkpoint(<its path>); if that checkpoint is lost or never existed, "
            f"with adopt=Adopt.from_states('{self.found}', in_flight='committed' or 'burn'). To "
            f"begin anew, give the state another name, or remove the old one: {removal}."
        )


@dataclass(eq=False, repr=False)
class LostStateError(StateError):
    """A state that the log knows has no control record any more."""

    state: str
    """The state's name."""
    listed: Token
    """The last committed attempt that had begun it."""
    where: str = ""
    """Where the state is, if the store says that."""
    lasts: bool = True
    """Whether its store outlives the process."""

    def __str__(self) -> str:
        if not self.lasts:
            return (
                f"{_placed(self)} is lost: it was in memory, and ended with its process or its "
                f"Factory, but the log says that batch {self.listed.txid} was stored there. Keep "
                "it in a store that lasts, such as 'sqlite:counts.db', or start without a "
                f"checkpoint. Nothing brings it back: {_accepting(self.state, self.listed)}"
            )
        return (
            f"{_placed(self)} is lost: the log says that batch {self.listed.txid} was stored "
            "there, but the store holds no control record. If the prefix= or the place of the "
            "state was changed, give the old one. Otherwise restore the store from a backup that "
            f"is at least as new; or {_accepting(self.state, self.listed)}"
        )


@dataclass(eq=False, repr=False)
class KeyTypeError(StateError):
    """A key was asked for whose fields have other types than those of the state's keys."""

    place: str
    """The state."""
    found: str
    """The key that was asked for."""
    types: str
    """The types of its keys' fields."""
    example: str
    """One of its keys."""

    _template: ClassVar[str] = (
        "{place}: the key {found} was asked for, which can't be one of its keys: their fields are "
        "({types}), as in {example}. Ask with values of these types."
    )


@dataclass(eq=False, repr=False)
class NoStateError(StateError):
    """A reader found no control record, so no state has begun there: perhaps a mistyped place."""

    where: str
    """The store; empty if it has no name."""
    prefix: str | None
    """The reader's prefix; None if the store has no prefixes."""
    others: Sequence[str] = ()
    """Prefixes of some states in the store."""

    def __post_init__(self) -> None:
        self.others = tuple(self.others)
        super().__post_init__()

    def __str__(self) -> str:
        place = f" in {self.where}" if self.where else ""
        named = there = ""
        if self.prefix is not None:
            named = f" with the prefix {self.prefix!r}" if self.prefix else " without a prefix"
            near = get_close_matches(self.prefix, self.others, _SHOWN)
            listed = [*near, *(other for other in self.others if other not in near)]
            found = ", ".join(map(repr, listed[:_SHOWN]))
            found += f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            there = " No other state was found there: is the place mistyped?"
            if found:
                there = (
                    f" States there have the prefixes: {found}. Give it with prefix=; that of a "
                    "topology's state is the state's name, unless its URL or factory says "
                    "otherwise."
                )
        return (
            f"there is no state{named}{place}, or it has not begun.{there} A state is there from "
            "the first start of its topology on; one that is updated without a topology, from its "
            "first beginCommit. State that Storm wrote, and no topology has taken over, is read "
            "with written_by=storm."
        )


@dataclass(eq=False, repr=False)
class UnownedStateError(StateError):
    """A state can't begin: there are entries, and no control record that names their owner."""

    state: str
    """The state's name or place."""
    found: str
    """An entry, or whatever is there."""

    _template = (
        "state {state} can't begin: there is {found} already, and no control record. If Storm "
        "wrote it, start with a new checkpoint and adopt=Adopt.from_storm(<txid>): of opaque "
        "state the last batch that Storm committed, of transactional state the highest txid "
        "among the values, of plain values any number from 1 (docs/protocol.md, \"Storm's "
        'state"). Otherwise give the state another prefix, or remove the entries; if the '
        "control record was lost, restore the store from a backup."
    )


@dataclass(eq=False, repr=False)
class GivenBackError(StateError):
    """The state was given back to Storm, and its control record still says so."""

    state: str
    """The state's name or place."""

    _template = (
        "state {state} was given back to Storm, and its control record is still there. Delete that "
        'first (docs/protocol.md, "Storm\'s state", says how). Then Storm may go on, readers open '
        "the state with written_by=storm, and a topology takes it over again with a new checkpoint "
        "and adopt=Adopt.from_storm(<Storm's last txid>)."
    )


@dataclass(eq=False, repr=False)
class MovedStateError(StateError):
    """Another state, which was built anew, has taken the place of this one."""

    state: str
    """The state's name or place."""
    prefix: str
    """The prefix of the other one, in the same store."""
    decided: bool = True
    """Whether it has done so; otherwise it is about to."""

    def __str__(self) -> str:
        if not self.decided:
            return (
                f"the state with the prefix {self.prefix!r} is about to take the place of state "
                f"{self.state}, which nothing updates any more. Give the same command (python -m "
                "trident rebuild, or state swap) again to finish."
            )
        return (
            f"the state with the prefix {self.prefix!r}, which was built anew, has taken the place "
            f"of state {self.state}: readers use that one, and nobody would read new values of "
            "this one. Stop this topology, and start it with the checkpoint that has built the "
            "other state."
        )


@dataclass(eq=False, repr=False)
class UnfinishedCopyError(StateError):
    """A copy to this place, or the state's removal, has begun and is not finished."""

    state: str
    """The state's name or place."""
    log_id: str
    """The log id of the state that is copied."""

    def __str__(self) -> str:
        if self.log_id == DROPPING:
            return (
                f"state {self.state} is being removed, and can be neither read nor updated. Give "
                "the same command (python -m trident state drop URL --yes) again to finish."
            )
        return (
            f"state {self.state} is an unfinished copy of the state whose log id is {self.log_id}, "
            "and can be neither read nor updated. Give the same command (python -m trident state "
            "copy FROM TO) again to finish. Or remove the copy (python -m trident state drop URL), "
            "or give the state another prefix."
        )


@dataclass(eq=False, repr=False)
class CopyError(StateError):
    """A state can't be copied, or not now; the copied entries stay marked as unfinished."""

    what: str
    """What was found, with both places."""
    advice: str
    """The next step."""

    _template = "{what}. {advice}"


@dataclass(eq=False, repr=False)
class RewoundStateError(StateError):
    """The store is in an older state than the log."""

    state: str
    """The state's name."""
    found: Token
    """The token in the control record."""
    listed: Token
    """The last committed attempt that had begun the state."""
    where: str = ""
    """Where the state is, if the store says that."""

    def __str__(self) -> str:
        return (
            f"{_placed(self)} was rewound: it holds {_shown(self.found)}, but "
            f"{_shown(self.listed)} was stored and committed there. Restore the store from a newer "
            f"backup; or {_accepting(self.state, self.listed)}"
        )


@dataclass(eq=False, repr=False)
class LostWritesError(StateError):
    """The store lost the last confirmed writes of a committed batch."""

    state: str
    """The state's name."""
    token: Token
    """The committed attempt that may have lost writes."""
    where: str = ""
    """Where the state is, if the store says that."""

    def __str__(self) -> str:
        return (
            f"{_placed(self)} lost writes of batch {self.token.txid}, which is committed: the "
            "store had confirmed them, and holds the batch as begun only. It started from old "
            "data, or another server took over without them; see its log. Restore the store from "
            f"a backup made after that batch; or {_accepting(self.state, self.token)}"
        )


@dataclass(eq=False, repr=False)
class CopiedLogError(StateError):
    """A state was changed by another copy of this checkpoint, or the log has lost its end."""

    state: str
    """The state's name."""
    found: Token
    """The token in its control record."""
    committed: int
    """The last batch that this log has committed."""
    where: str = ""
    """Where the state is, if the store says that."""
    damage: str = ""
    """Bytes at the end of the log that are no entry."""

    def __str__(self) -> str:
        holds = (
            f"{_shown(self.found)}, which this log, whose last committed batch is "
            f"{self.committed}, has not begun"
        )
        lost = ""
        if self.damage:
            lost = f" ({self.damage}; a run that was killed while it wrote leaves the like as well)"
        return (
            f"{_placed(self)} was changed by another copy of this checkpoint, or the log has lost "
            f"its end: it holds {holds}. Either the checkpoint was copied and both copies have "
            "run, or it was restored from an older backup than the store, or its disk has lost "
            f"the end of the log{lost}. Go on with the copy that ran last and delete the other; or "
            "restore checkpoint and store from backups of one moment; or give this one a prefix of "
            "its own and begin anew with a new checkpoint."
        )


@dataclass(eq=False, repr=False)
class LostPlanError(StateError):
    """A transactional state has begun the batch by another plan than the one in the log."""

    state: str
    """The state's name."""
    found: Token
    """The attempt that has begun there."""
    where: str = ""
    """Where the state is, if the store says that."""

    def __str__(self) -> str:
        return (
            f"{_placed(self)} has begun {_shown(self.found)} with tuples that this log does not "
            "know: the checkpoint has lost the entry with the batch's plan, or another copy of the "
            "checkpoint has run. A new plan may have other tuples, and what the lost plan has "
            "written would count too. Restore the checkpoint with that entry; or checkpoint and "
            "store from backups of one moment; or accept it, and run the batch by a new plan, in "
            "which keys that the lost plan has updated keep its updates: "
            f"accept_loss={{{self.state!r}: {self.found.txid}}}."
        )


def _placed(
    error: LostStateError | RewoundStateError | LostWritesError | CopiedLogError | LostPlanError,
) -> str:
    return f"state {error.state} in {error.where}" if error.where else f"state {error.state}"


def _accepting(state: str, lost: Token) -> str:
    """Return the advice to go on without the writes that a store has lost."""
    return (
        "accept the loss, and go on with what the store holds, without the batches it has lost, "
        f"which don't run again: accept_loss={{{state!r}: {lost.txid}}}; or begin anew with an "
        "empty store and a new checkpoint."
    )


def _shown(token: Token) -> str:
    return f"batch {token.txid} (attempt {token.attempt})"


@dataclass(eq=False, repr=False)
class CorruptStateError(StateError):
    """Something in the store can't be read."""

    what: str
    """What was being read."""
    found: str
    """The first bytes that were found, or the reader's error."""
    advice: str = ""
    """The next step."""

    def __str__(self) -> str:
        text = f"{self.what} can't be read: {self.found}."
        return f"{text} {self.advice}" if self.advice else text


@dataclass(eq=False, repr=False)
class BackingMapError(StateError):
    """A backing map did not answer a value for each key."""

    store: str
    """The map's class."""
    found: str
    """The answer."""
    keys: int
    """How many keys it was asked for."""

    def __str__(self) -> str:
        asked = f"{self.keys} key{'' if self.keys == 1 else 's'}"
        return (
            f"{self.store}: multiGet answered {self.found} for {asked}. Return a list of one value "
            "for each key, in their order: what multiPut was given (bytes, unless codec says "
            "otherwise), or None where the key is absent."
        )


@dataclass(eq=False, repr=False)
class SerializationError(StateError):
    """A key or value would not come back equal and of the same type from the store."""

    what: str
    """``"key"`` or ``"value"``."""
    found: str
    """The offending type or value, shortened."""
    allowed: str
    """The types that may be stored, and the next step."""

    _template = "a {what} can't be stored: found {found}. {allowed}"


@dataclass(eq=False, repr=False)
class LongOverflowError(TridentError, ArithmeticError):
    """An integer left the 64 bits that stores and Spark keep.

    Notes
    -----
    It is no OverflowError: SQLite reports one that a function raises as another error.
    """

    what: str
    """The operation, or the key of the value."""
    value: int
    """The value that it would have had."""

    _template = (
        "{what}: {value} does not fit into 64 bits. "
        "Sum doubles instead, or keep the sum in several keys."
    )


@dataclass(eq=False, repr=False)
class UsageError(TridentError, ValueError):
    """A call is wrong, and had no effect.

    Parameters
    ----------
    what : str
        The call and what is wrong with it.
    found : str
        What was given.
    allowed : sequence of str
        What would be right; the name nearest to ``found`` is offered.
    advice : str
        The next step.

    Examples
    --------
    >>> str(UsageError("sqlite: unknown option", "cash", ["cache", "kind"]))
    "sqlite: unknown option 'cash'; there are: cache, kind. Did you mean 'cache'?"
    """

    what: str
    found: str = ""
    allowed: Sequence[str] = ()
    advice: str = ""

    def __post_init__(self) -> None:
        self.found, self.allowed = masked(self.found), tuple(self.allowed)
        super().__post_init__()

    @property
    def nearest(self) -> str | None:
        """The allowed name that is most like the one found."""
        return next(iter(get_close_matches(self.found, self.allowed, n=1)), None)

    def __str__(self) -> str:
        text = f"{self.what} {self.found!r}" if self.found else self.what
        if self.allowed:
            text += f"; there are: {', '.join(self.allowed)}"
        text += "."
        if self.nearest:
            text += f" Did you mean {self.nearest!r}?"
        return f"{text} {self.advice}" if self.advice else text


class StateURLError(UsageError):
    """The URL of a state can't be used; nothing was connected to.

    Raise it without any part of a password: pass only ``str(url)``, the URL's scheme, or the name
    of an option.

    The parameters are those of :class:`UsageError`.
    """
