"""A driver with Spark for its clock: one process stages batches, another commits them behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.protocol.model.driver import Driver
from tests.protocol.model.shared import (
    Halted,
    Record,
    Staged,
    Steps,
    StepsOf,
    Stopped,
    Stored,
    Unavailable,
)

if TYPE_CHECKING:
    from tests.protocol.model.world import World

_MOST = 2


class StagingDriver(Driver):
    """A driver whose first process takes batches from the source, and stages them.

    It tells the source that a batch needn't come again when that is staged. What is staged lies
    beside the log, a file by the batch and by the claim of the run that wrote it, and a driver that
    starts finds it there. The source has a log of its own, which says where each batch ends.
    """

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name, world)
        self.pending: list[tuple[int, Staged]] = []
        self.last = 0
        self.over = False

    def run(self) -> Steps:
        try:
            found: dict[int, Staged] = {}
            if not self.rules.staged_listed:
                found = yield from self._find()
            yield from self._open()
            self.claim = self.entry.number
            if self.rules.staged_listed:
                found = yield from self._find()
            yield from self._recover(found)
            self.world.beside(self, self._commits())
            yield from self._take_batches()
        except (Stopped, Unavailable):
            return
        except Halted as reason:
            self.world.halted = str(reason)

    def _find(self) -> StepsOf[dict[int, Staged]]:
        """List what is staged, and read what counts of it, one file after the other."""
        yield None
        names = sorted(self.world.staged, reverse=not self.rules.staged_highest)
        found = {}
        for name in dict(names).items():
            yield None
            if name in self.world.staged:
                found[name[0]] = self.world.staged[name]
        return found

    def _recover(self, found: dict[int, Staged]) -> Steps:
        """Remove what is committed, and stage all else once more, by the own claim."""
        committed = self.last = self.entry.committed
        for txid in sorted(found):
            if txid <= committed:
                yield from self._unstage(txid)
            elif self.rules.staged_recovered:
                if txid != self.last + 1:
                    raise Stopped
                if self.rules.staged_follows and found[txid].before != self._last_end():
                    raise Halted("another batch was before")
                self.pending.append((txid, found[txid]))
                self.last = txid
        for txid, staged in self.pending if self.rules.staged_again else ():
            yield from self._stage(txid, staged)
            if not self.rules.staged_left:
                yield from self._unstage(txid, but=self.claim)

    def _last_end(self) -> int | None:
        """Where the last batch ends that is staged or committed."""
        return self.pending[-1][1].digest if self.pending else self.entry.digest

    def _take_batches(self) -> Steps:
        """Take the batches that follow where the source's log ends, the first perhaps again."""
        yield None
        self.position = self.world.source_done
        before, end = map(self.world.ends.get, (self.position, self.position + 1))
        digest, checked = end, not self.rules.staged_before
        while True:
            yield lambda: self.over or self._due()
            txid = self.position + 1
            if end is None:
                end = yield from self._end_batch(txid)
                digest = self.world.ends[txid]
                if self.world.setup.gap:
                    yield None
                    digest = self.world.ends[txid]
            assert digest is not None
            if not checked and txid == self.last + 1:
                yield None
                if self._last_end() != self.world.ends.get(txid - 1):
                    raise Halted("another batch was before")
            checked = True
            yield from self._next(txid, before, end, digest)
            before, end = end, None

    def _end_batch(self, txid: int) -> StepsOf[int]:
        """The source logs where a batch ends, unless another driver's has done so.

        In an object store it may find out too late.
        """
        yield None
        if txid in self.world.ends:
            raise Stopped
        if self.world.setup.replaces:
            yield None
        return self.world.end_batch(txid)

    def _next(self, txid: int, before: int | None, end: int, digest: int) -> Steps:
        """Stage the batch that goes on from `before`, unless it was staged."""
        if self.rules.place and txid != self.last + 1:
            if txid != self.last:
                raise Stopped
            yield lambda: self.over or not self.pending
            if self.rules.staged_replay and digest != self.entry.digest:
                raise Halted("another batch is replayed")
        else:
            yield lambda: self.over or len(self.pending) < _MOST
            if self.over:
                raise Stopped
            staged = Staged(self.world.emit(txid, before, end), digest, self._last_end())
            if not self.rules.staged_told:
                yield None
                self._took(txid)
            if not self.rules.staged_first:
                self.pending.append((txid, staged))
            yield from self._stage(txid, staged)
            if self.rules.staged_first:
                self.pending.append((txid, staged))
            self.last = txid
        if self.over:
            raise Stopped
        yield None
        self._took(txid)

    def _stage(self, txid: int, staged: Staged) -> Steps:
        """Once more where that failed; whether it is staged by now or not, it is replaced."""
        files, name = self.world.staged, (txid, self.claim if self.rules.staged_claim else 0)
        while True:
            try:
                yield None
                files.pop(name, None)
                yield None
                files[name] = staged
                yield None
                return
            except Unavailable:
                pass

    def _unstage(self, txid: int, but: int | None = None) -> Steps:
        """Remove the files of a batch, one after the other."""
        for name in [each for each in self.world.staged if each[0] == txid and each[1] != but]:
            yield None
            self.world.staged.pop(name, None)

    def _commits(self) -> Steps:
        """The second process: commit what is staged, in order."""
        try:
            while True:
                yield lambda: bool(self.pending)
                txid = self.pending[0][0]
                while self.entry.committed < txid:
                    yield from self._try((txid, self.entry.begun[1]))
                yield from self._unstage(txid)
                self.pending.pop(0)
        except (Stopped, Unavailable):
            self.over = True
        except Halted as reason:
            self.over = True
            self.world.halted = str(reason)

    def _content(self, txid: int) -> StepsOf[int]:
        staged = self.pending[0][1]
        if not self.rules.staged_kept:
            yield from self._unstage(txid)
        self.digest = staged.digest
        return staged.emission

    def _run(self, record: Record, emission: int, read: dict[tuple[int, str], Stored]) -> Steps:
        if self.rules.staged_held:
            yield None
            newest = self.log.newest()
            if newest is None or newest.writer != self.name:
                raise Stopped
        yield from super()._run(record, emission, read)

    def _emit_ahead(self, txid: int, before: int | None) -> None:
        """Nothing: the other process does."""

    def _finished(self, txid: int) -> None:
        """Nothing: the source knows already."""
