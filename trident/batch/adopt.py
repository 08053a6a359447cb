"""Whose state a new checkpoint takes over."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from trident.errors import PlanError

InFlight = Literal["committed", "burn"]


@dataclass(frozen=True, slots=True)
class OlderCheckpoint:
    """A checkpoint; if it is a URL, also the folder or URL that it was started with beside it."""

    checkpoint: str | os.PathLike[str] = field(repr=False)  # with its password
    spark_checkpoint: str | os.PathLike[str] | None = field(repr=False)

    def __post_init__(self) -> None:
        beside = () if self.spark_checkpoint is None else (self.spark_checkpoint,)
        for given in (self.checkpoint, *beside):
            if not (isinstance(given, str | os.PathLike) and given):
                # Only its type, as it may hold a password.
                found = "an empty str" if given == "" else type(given).__name__
                advice = "Give the path of the older checkpoint, or its URL, as a str."
                what = f"Adopt.from_checkpoint takes a folder or URL, found {found}"
                raise PlanError(what, "", (), advice)


@dataclass(frozen=True, slots=True)
class StatesAlone:
    """States whose log is lost: their log id, and what to take their last begun batch for."""

    log_id: str
    in_flight: InFlight

    def __post_init__(self) -> None:
        if not (isinstance(self.log_id, str) and re.fullmatch(r"[\w-]+", self.log_id)):
            what = "Adopt.from_states takes the log id that the states' errors name, found"
            advice = "For a checkpoint that still exists use Adopt.from_checkpoint(<its place>)."
            raise PlanError(what, repr(self.log_id), (), advice)
        if self.in_flight not in get_args(InFlight):
            known = get_args(InFlight)
            raise PlanError("Adopt.from_states: in_flight is", str(self.in_flight), known)


@dataclass(frozen=True, slots=True)
class StormsStates:
    """States that Storm wrote, up to a batch."""

    txid: int

    def __post_init__(self) -> None:
        if type(self.txid) is not int or self.txid < 1:
            what = "Adopt.from_storm takes the last txid that Storm committed, from 1, found"
            raise PlanError(what, repr(self.txid))


@dataclass(frozen=True, slots=True)
class Adopt:
    """Whose state a new checkpoint takes over, once: the argument of ``start(adopt=…)``.

    Made by `from_checkpoint`, `from_states` or `from_storm`. Later starts may give it again, which
    changes nothing.

    Raises
    ------
    PlanError
        For an impossible checkpoint, log id or txid; nothing is looked up yet.
    """

    source: OlderCheckpoint | StatesAlone | StormsStates

    def __post_init__(self) -> None:
        given: object = self.source
        if not isinstance(given, OlderCheckpoint | StatesAlone | StormsStates):
            what = f"an Adopt is not made of {type(given).__name__}"
            raise PlanError(what, "", (), f"Give one of: {ADOPT_FORMS}.")

    @classmethod
    def from_checkpoint(
        cls,
        checkpoint: str | os.PathLike[str],
        spark_checkpoint: str | os.PathLike[str] | None = None,
    ) -> Adopt:
        """Continue an older checkpoint, which then can't be started any more.

        Parameters
        ----------
        checkpoint : str or path
            Its folder or URL.
        spark_checkpoint : str or path, optional
            The folder that it was started with beside a URL, or that folder's URL. Needed if a
            stream is a DataFrame, as batches may be staged there.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from trident import Adopt, FixedBatchSpout, Sum, TridentTopology
        >>> def run(folder, checkpoint, adopt=None):
        ...     topology = TridentTopology()
        ...     numbers = topology.newStream("numbers", FixedBatchSpout("n long", 1, [1], [2]))
        ...     numbers.persistentAggregate(f"sqlite:{folder}/sum.db", "n", Sum(), "sum")
        ...     with topology.start(checkpoint=checkpoint, trigger="available", adopt=adopt) as run:
        ...         run.awaitTermination()
        ...         print(run.status)
        >>> with TemporaryDirectory() as folder:
        ...     run(folder, f"{folder}/old")
        ...     run(folder, f"{folder}/new", Adopt.from_checkpoint(f"{folder}/old"))
        {'numbers': 'stopped'}
        {'numbers': 'stopped'}
        """
        return cls(OlderCheckpoint(checkpoint, spark_checkpoint))

    @classmethod
    def from_states(cls, log_id: str, *, in_flight: InFlight) -> Adopt:
        """Continue states whose checkpoint is lost.

        Parameters
        ----------
        log_id : str
            The log id that the states' control records hold; their errors name it.
        in_flight : str
            What to take the last begun batch for: ``"committed"``, or ``"burn"`` to undo it, for
            opaque states only. Has no effect if the states know that it is committed.

        Examples
        --------
        >>> Adopt.from_states("5f3a0c41d2b79e86", in_flight="burn")
        Adopt.from_states('5f3a0c41d2b79e86', in_flight='burn')
        >>> Adopt.from_states("5f3a0c41d2b79e86", in_flight="undo")
        Traceback (most recent call last):
        ...
        trident.errors.PlanError: Adopt.from_states: in_flight is 'undo'; there are: committed,
        burn.
        """
        return cls(StatesAlone(log_id, in_flight))

    @classmethod
    def from_storm(cls, txid: int) -> Adopt:
        """Continue states that Storm wrote.

        Parameters
        ----------
        txid : int
            The last batch that Storm committed: its values up to that batch count, those of a later
            one don't. For transactional states it has to be the highest txid among their values:
            they can't be undone, and our batch of that number would be taken for applied.

        Examples
        --------
        >>> Adopt.from_storm(17)
        Adopt.from_storm(17)
        """
        return cls(StormsStates(txid))

    def __repr__(self) -> str:
        from trident.log.checkpoint import shown  # declaring a topology needs no log

        match self.source:
            case OlderCheckpoint(place, beside):
                second = "" if beside is None else f", {shown(beside)!r}"
                return f"Adopt.from_checkpoint({shown(place)!r}{second})"
            case StatesAlone(log_id, in_flight):
                return f"Adopt.from_states({log_id!r}, in_flight={in_flight!r})"
            case StormsStates(txid):
                return f"Adopt.from_storm({txid})"


ADOPT_FORMS = (
    "Adopt.from_checkpoint(<its folder or URL>), "
    "Adopt.from_states(<log id>, in_flight='committed' or 'burn'), Adopt.from_storm(<last txid>)"
)
