"""A driver with Spark for its clock: one process stages batches, another commits them behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.protocol.model.driver import Driver
from tests.protocol.model.shared import Halted, Stopped, Unavailable
from tests.protocol.model.task import Steps, StepsOf

if TYPE_CHECKING:
    from tests.protocol.model.world import World

_MOST = 2


class StagingDriver(Driver):
    """A driver whose first process takes batches from the source, and stages them.

    It tells the source that a batch needn't come again when that is staged. What is staged lies
    beside the log, and a driver that starts finds it there.
    """

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name, world)
        self.pending: list[tuple[int, int]] = []
        self.last = 0
        self.over = False

    def run(self) -> Steps:
        try:
            yield from self._open()
            yield None
            self._recover()
            self.world.beside(self, self._commits())
            yield None
            self.position = self.world.source_done
            while True:
                yield lambda: self.over or self._due()
                yield from self._next()
        except (Stopped, Unavailable):
            return
        except Halted as reason:
            self.world.halted = str(reason)

    def _recover(self) -> None:
        committed = self.last = self.entry.committed
        for txid in [each for each in self.world.staged if each <= committed]:
            del self.world.staged[txid]
        if not self.rules.staged_recovered:
            return
        for txid, emission in sorted(self.world.staged.items()):
            if txid != self.last + 1:
                raise Stopped
            self.pending.append((txid, emission))
            self.last = txid

    def _next(self) -> Steps:
        """Take the next batch from the source."""
        txid = self.position + 1
        if self.rules.place and txid != self.last + 1:
            if txid != self.last:
                raise Stopped
            yield lambda: self.over or not self.pending
        else:
            yield lambda: self.over or len(self.pending) < _MOST
            if self.over:
                raise Stopped
            emission = self.world.emit(txid, None)
            if not self.rules.staged_told:
                yield None
                self._took(txid)
            if not self.rules.staged_first:
                self.pending.append((txid, emission))
            yield from self._stage(txid, emission)
            if self.rules.staged_first:
                self.pending.append((txid, emission))
            self.last = txid
        if self.over:
            raise Stopped
        yield None
        self._took(txid)

    def _stage(self, txid: int, emission: int) -> Steps:
        """Once more where that failed, whether it is staged by now or not."""
        staged = self.world.staged
        while True:
            try:
                yield None
                if staged.get(txid, emission) != emission and self.rules.staged_once:
                    raise Stopped
                staged[txid] = emission
                yield None
                return
            except Unavailable:
                pass

    def _commits(self) -> Steps:
        """The second process: commit what is staged, in order."""
        try:
            while True:
                yield lambda: bool(self.pending)
                txid, _ = self.pending[0]
                while self.entry.committed < txid:
                    yield from self._try((txid, self.entry.begun[1]))
                yield None
                self.world.staged.pop(txid, None)
                self.pending.pop(0)
        except (Stopped, Unavailable):
            self.over = True
        except Halted as reason:
            self.over = True
            self.world.halted = str(reason)

    def _content(self, txid: int) -> StepsOf[int]:
        _, emission = self.pending[0]
        if not self.rules.staged_kept:
            yield None
            self.world.staged.pop(txid, None)
        return emission

    def _finished(self, txid: int) -> None:
        """Nothing: the source knows already."""
