"""A reader outside the batch: both states, as of one committed batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.protocol.model.shared import Cell, Record, Unavailable, Value
from tests.protocol.model.task import Steps, StepsOf

if TYPE_CHECKING:
    from tests.protocol.model.world import World

RESTARTS = 6
Answer = dict[tuple[int, str], Value]


class _Again(Exception):
    pass


class Reader:
    """Reads every key of both states; `answer` is None until that succeeded."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rules = world.rules
        self.floor = world.promised
        self.answer: Answer | None = None

    def run(self) -> Steps:
        for _ in range(RESTARTS):
            try:
                self.answer = {}
                yield from self._read(self.answer)
                return
            except _Again:
                self.answer = None
            except Unavailable:
                break
        self.answer = None

    def _read(self, answer: Answer) -> Steps:
        if self.rules.control_first:
            records = yield from self._records()
            cells = yield from self._cells()
        else:
            cells = yield from self._cells()
            records = yield from self._records()
        cut = min(record.committed for record in records)
        reach = min(record.token[0] for record in records)
        for (state, key), cell in cells.items():
            own = cut if self.rules.one_cut else records[state].committed
            last = reach if self.rules.one_cut else records[state].token[0]
            answer[state, key] = self._value(cell, records, own, last)
        if self.rules.recheck and self.world.setup.ability == "fenced":
            for record in (yield from self._records()):
                if record.token[0] > cut + 1:
                    raise _Again

    def _records(self) -> StepsOf[list[Record]]:
        records = []
        for store in self.world.stores:
            yield None
            records.append(store.control or Record(0, (0, 0), 0, ()))
        return records

    def _cells(self) -> StepsOf[dict[tuple[int, str], Cell | None]]:
        cells = {}
        for state, store in enumerate(self.world.stores):
            for key in self.world.keys:
                yield None
                cells[state, key] = store.get(key)[0]
        return cells

    def _value(self, cell: Cell | None, records: list[Record], cut: int, reach: int) -> Value:
        if cell is None:
            return None
        if cell.txid <= cut:
            knows = max(records, key=lambda record: record.committed)
            counts = knows.counts(cell.txid, cell.attempt) or not self.rules.attempts
            return cell.curr if counts else cell.prev
        if cell.txid > max(reach, cut + 1) and self.rules.restart:
            raise _Again
        return cell.prev
