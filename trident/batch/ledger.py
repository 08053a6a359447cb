"""A group's log during one run: which batch is due, and each entry that follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from trident.batch.attempt import Due
from trident.batch.failures import Patience
from trident.log.entry import LogEntry
from trident.log.errors import LogMismatchError, PlacementError, ReplayError
from trident.log.log import Log, LogWriter
from trident.states.control import BURNT
from trident.states.expiry import later
from trident.states.values import Token


class Ledger(LogWriter):
    """What a run knows of its group's log, and writes to it; waits for a disk that is away.

    `source` is how errors name the log of what makes the batches.
    """

    def __init__(self, log: Log, source: str, patience: Patience) -> None:
        super().__init__(log)
        self.source = source
        self._patience = patience

    @property
    def due(self) -> Due:
        """What the next attempt is made from."""
        entry = self.entry
        return Due(entry.begun, entry.metadata, entry.planned)

    @property
    def last(self) -> Token | None:
        """The last committed attempt of this log; None before the first."""
        entry = self.entry
        if entry.committed == entry.base:
            return None
        return Token(entry.committed, entry.retried.get(entry.committed, 0))

    def is_replay(self, txid: int | None, digest: str | None, query_id: str | None) -> bool:
        """Whether the last committed batch comes once more, and not the due one; refuse any
        other."""
        entry, place = self.entry, self.log.place
        if entry.query_id not in (None, query_id):
            raise LogMismatchError(
                place,
                "streaming query",
                entry.query_id,
                query_id,
                f"{self.source} belongs to another query: restore it, or start with a new "
                "checkpoint and adopt=Adopt.from_checkpoint(<this one>).",
            )
        if txid is None or txid == entry.committed + 1:
            return False
        if txid != entry.committed or txid == entry.base:
            raise PlacementError(place, entry.committed, self.source, txid)
        if digest != entry.digest:
            raise ReplayError(place, self.source, txid, entry.digest, digest)
        return True

    def append(self, **changes: Any) -> LogEntry:
        """Append an entry, however long the disk is away.

        The attempt goes on afterwards: whether it has committed is not known until this very entry
        is there, or another run's.
        """
        append = partial(super().append, **changes)
        return self._patience.do(append, self.entry.begun.txid)

    def take_next_attempt(self) -> None:
        """Reserve the next attempt of the batch that is due."""
        self._patience.do(self.next_attempt, self.entry.begun.txid)

    def commit(
        self,
        metadata: Mapping[str, Any],
        begun: Iterable[str],
        digest: str | None,
        query_id: str | None,
        swept: bool = False,
        reached: int | None = None,
    ) -> None:
        """Commit the due attempt, and reserve the next batch's first; if `swept`, forget old
        attempts. It has `reached` a time, at which entries may expire."""
        entry = self.entry
        token = txid, attempt = entry.begun
        states = dict.fromkeys(begun, token)
        # A batch that an adoption has burnt is another log's: a state that comes back may hold it.
        retried = {each: kept for each, kept in entry.retried.items() if kept == BURNT or not swept}
        self.append(
            query_id=query_id,
            states={**entry.states, **states},
            accepted={name: held for name, held in entry.accepted.items() if name not in states},
            metadata=metadata,
            planned=None,
            begun=Token(txid + 1, 0),
            committed=txid,
            retried={**retried, txid: attempt} if attempt else retried,
            swept=txid - 1 if swept else entry.swept,
            reached=later(entry.reached, reached),
            digest=digest,
        )
