"""The control record: which attempt of which batch a state belongs to right now.

Its bytes are the fence. Every write of an attempt carries the bytes of the record as that attempt
began it, and a store that can refuses the write when it holds other bytes. Announcing a commit
changes the bytes, so it also shuts out whatever is still under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from trident.states.backing_map import IBackingMap
from trident.states.errors import (
    CorruptStateError,
    LineageError,
    LostStateError,
    LostWritesError,
    RewoundStateError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
)
from trident.states.values import Token

_FORMAT = 1
BURNT = -1
"""The attempt number that no attempt has: a txid excepted with it has no committed attempt."""


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """What a state is told about its batch; immutable, picklable, shipped to every task.

    Parameters
    ----------
    lineage : str
        The log's id, made once.
    token : Token
        The attempt that may write now.
    committed : int
        The last committed txid; 0 before the first.
    exceptions : mapping of int to int
        The txids whose committed attempt was not 0, and that attempt.

    Examples
    --------
    >>> begun = ControlRecord("a1", Token(5, 2), committed=4, exceptions={3: 1})
    >>> begun.is_committed(3, 0), begun.is_committed(3, 1), begun.is_committed(5, 2)
    (False, True, False)
    >>> begun.announced().is_committed(5, 2)
    True
    >>> ControlRecord.decode(begun.encode()) == begun
    True
    """

    lineage: str
    token: Token
    committed: int = 0
    exceptions: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def __reduce__(self) -> tuple[Any, ...]:
        return ControlRecord, (self.lineage, self.token, self.committed, dict(self.exceptions))

    def __hash__(self) -> int:
        return hash((self.lineage, self.token, self.committed))

    def attempt_of(self, txid: int) -> int:
        """Return which attempt of a committed `txid` counts."""
        return self.exceptions.get(txid, 0)

    def is_committed(self, txid: int, attempt: int) -> bool:
        """Return whether what `attempt` of `txid` wrote counts."""
        return txid <= self.committed and attempt == self.attempt_of(txid)

    def announced(self) -> ControlRecord:
        """Return the record after its own attempt has been committed."""
        txid, attempt = self.token
        exceptions = {**self.exceptions, txid: attempt} if attempt else self.exceptions
        return ControlRecord(self.lineage, self.token, txid, exceptions)

    def encode(self) -> bytes:
        """Return the canonical bytes: equal for equal records, and only for them."""
        return orjson.dumps(
            {
                "format": _FORMAT,
                "lineage": self.lineage,
                "token": list(self.token),
                "committed": self.committed,
                "exceptions": sorted(self.exceptions.items()),
            }
        )

    @staticmethod
    def decode(data: bytes) -> ControlRecord:
        """Return the record that `data` encodes.

        Raises
        ------
        CorruptStateError
            When `data` is not a control record of this format.
        """
        try:
            found = orjson.loads(data)
            if found["format"] != _FORMAT:
                raise ValueError(f"format {found['format']}, this version reads {_FORMAT}")
            txid, attempt = found["token"]
            return ControlRecord(
                str(found["lineage"]),
                Token(int(txid), int(attempt)),
                int(found["committed"]),
                {int(txid): int(attempt) for txid, attempt in found["exceptions"]},
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptStateError(
                "a state's control record",
                f"{bytes(data[:80])!r} ({error})",
                "Restore the store from a backup, or begin anew with an empty store and a new "
                "checkpoint.",
            ) from error


class Control:
    """One state's control record, as the driver and readers use it.

    Parameters
    ----------
    backing : IBackingMap
        The store; only its control record and incarnation are touched.
    name : str
        How errors name the state.

    Notes
    -----
    Lives where the map lives: on the driver for the batch, in a task or a serving process for
    reading. Every call is one round trip, a changing one two; none is repeated by itself.
    """

    def __init__(self, backing: IBackingMap, name: str = "state") -> None:
        self.name = name
        self._backing = backing
        self._seen: tuple[bytes, ControlRecord] | None = None
        self._incarnation: str | None = None
        self._announced: ControlRecord | None = None

    @property
    def place(self) -> str:
        """How errors name the state: with where it is, if the store says that."""
        where = self._backing.where
        return f"{self.name} in {where}" if where else self.name

    def read(self) -> ControlRecord | None:
        """Return the record as the store holds it now, None where there is none."""
        return self._read()[1]

    def _read(self) -> tuple[bytes | None, ControlRecord | None]:
        data = self._backing.getControl()
        if data is None:
            return None, None
        # Readers ask before every query and mostly find what they found before.
        seen = self._seen
        if seen is None or seen[0] != data:
            seen = self._seen = data, ControlRecord.decode(data)
        return seen

    def _check(
        self, lineage: str, listed: Token | None, adopted: frozenset[str]
    ) -> tuple[bytes | None, ControlRecord | None]:
        stored, found = self._read()
        if found is None:
            if listed is not None:
                raise LostStateError(self.place, listed)
            return stored, found
        if found.lineage != lineage and found.lineage not in adopted:
            raise LineageError(self.place, found.lineage, lineage)
        if listed is not None and found.token < listed:
            raise RewoundStateError(self.place, found.token, listed)
        return stored, found

    def begin(
        self,
        record: ControlRecord,
        *,
        listed: Token | None = None,
        adopted: frozenset[str] = frozenset(),
    ) -> None:
        """Make `record` the state's record, and so its token the only one that may write.

        Parameters
        ----------
        record : ControlRecord
            What is begun: the log's lineage, the new token, what is committed.
        listed : Token or None
            The token the log knows this state to have held; None where the log doesn't list it.
        adopted : frozenset of str
            Further lineages whose state this log has taken over.

        Raises
        ------
        LineageError, LostStateError, RewoundStateError
            When the stored record is another log's, gone, or older than the log, or this object,
            knows it was.
        StaleBatchError
            When the state has already begun a later attempt.
        StateError
            When this very attempt has begun there: another state is kept in the same place.
        StateUnavailableError
            When the record changed between the look and the step.
        """
        incarnation = self._backing.incarnation()
        stored, found = self._check(record.lineage, listed, adopted)
        if found is not None and found.token > record.token:
            raise StaleBatchError(record.token, found.token)
        if found is not None and found.token == record.token:
            # Every attempt begins a state once: whoever did so calls this place another name.
            raise StateError(
                f"state {self.place}: attempt {record.token.attempt} of batch "
                f"{record.token.txid} has begun there already, so two states of this topology are "
                "kept in one place, perhaps under two names of one server. Give one of them "
                "another prefix."
            )
        self._check_announced(found)
        if not self._backing.putControl(record.encode(), stored):
            raise StateUnavailableError(
                self.place, "its control record changed while the batch began", "It is retried."
            )
        self._incarnation = incarnation

    def _check_announced(self, found: ControlRecord | None) -> None:
        """Raise where the store forgot an announcement: what was written before it went too.

        The log can't tell, because it lists a state by the batches that began there.
        """
        announced = self._announced
        if announced is None:
            return
        if found is None:
            raise LostStateError(self.place, announced.token)
        if (found.token, found.committed) < (announced.token, announced.committed):
            raise RewoundStateError(self.place, found.token, announced.token)

    def ready(self, record: ControlRecord) -> None:
        """Confirm that everything written since ``begin(record)`` is still there, to stay.

        Raises
        ------
        StaleBatchError
            When a later attempt has begun.
        StateUnavailableError
            When the server restarted or another took over, or the record is not the begun one:
            acknowledged writes may be lost, so the attempt fails.
        """
        self._backing.persist()
        found = self.read()
        if found is not None and found.lineage == record.lineage and found.token > record.token:
            raise StaleBatchError(record.token, found.token)
        if found != record or self._backing.incarnation() != self._incarnation:
            raise StateUnavailableError(
                self.place,
                "the store restarted or lost writes during the batch",
                "The batch is retried; check the store's log if this repeats.",
            )

    def announce(self, record: ControlRecord) -> bool:
        """Tell readers that the attempt of `record` is committed, where it is still ours.

        Returns whether the state now knows; False where a later attempt has begun already.

        Raises
        ------
        LostWritesError
            When the server restarted or another took over since ``ready(record)``: nobody knows
            whether it kept what was confirmed, and the batch is committed already.
        """
        announced = record.announced()
        replaced = self._backing.putControl(announced.encode(), record.encode())
        if not replaced and self.read() != announced:
            return False
        # Only the server that confirmed the writes is known to have them under the announcement.
        if self._incarnation is not None and self._backing.incarnation() != self._incarnation:
            raise LostWritesError(self.place, record.token)
        self._announced = announced
        return True

    def catch_up(
        self,
        lineage: str,
        committed: int,
        exceptions: Mapping[int, int],
        *,
        listed: Token | None = None,
        adopted: frozenset[str] = frozenset(),
    ) -> None:
        """Tell readers what the log has committed, once at start, before the first batch.

        A crash between commit and announcement leaves the record behind the log; a record that
        is not behind stays as it is. Raises as :meth:`begin` does.
        """
        stored, found = self._check(lineage, listed, adopted)
        if found is None:
            return
        caught_up = ControlRecord(lineage, found.token, committed, exceptions)
        if found == caught_up or (found.lineage == lineage and found.committed >= committed):
            return
        if not self._backing.putControl(caught_up.encode(), stored):
            raise StaleBatchError(None, found.token)
