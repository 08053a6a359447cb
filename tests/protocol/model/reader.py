"""A reader outside the batch: both states as of one committed batch, or tables as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.protocol.model.shared import Cell, Record, Steps, StepsOf, Unavailable, Value

if TYPE_CHECKING:
    from tests.protocol.model.world import World

RESTARTS = 6
Answer = dict[tuple[int, str], Value]


class _Again(Exception):
    pass


class Reader:
    """Reads every key of both states; `looks` is empty until that succeeded.

    Maps are read together. Tables are read by the user's own queries, one for those of a database;
    each is made twice, as what it sees must not go back.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.rules = world.rules
        self.floor = world.promised
        self.looks: list[Answer] = []

    def run(self) -> Steps:
        world = self.world
        looks: list[Answer] = []
        try:
            if world.maps:
                answer = yield from self._read_maps()
                if answer is None:
                    return
                looks.append(answer)
            tables = [state for state in (0, 1) if state not in world.maps]
            for states in world.by_server(tables) * 2:
                yield None
                places = [(state, key) for state in states for key in world.keys]
                looks.append({place: world.value(*place) for place in places})
        except Unavailable:
            return
        self.looks = looks

    def _read_maps(self) -> StepsOf[Answer | None]:
        for _ in range(RESTARTS):
            try:
                answer: Answer = {}
                yield from self._read(answer)
                return answer
            except _Again:
                pass
        return None

    def _read(self, answer: Answer) -> Steps:
        if self.rules.control_first:
            records = yield from self._records()
            cells = yield from self._cells()
        else:
            cells = yield from self._cells()
            records = yield from self._records()
        cut = min(record.committed for record in records.values())
        reach = min(record.token[0] for record in records.values())
        reached = min(record.reached for record in records.values())
        for (state, key), cell in cells.items():
            own = cut if self.rules.one_cut else records[state].committed
            last = reach if self.rules.one_cut else records[state].token[0]
            value = self._value(cell, records, own, last)
            answer[state, key] = self.world.alive(value, reached)
        if self.rules.recheck and self.world.maps[1].setup.ability == "fenced":
            for record in (yield from self._records()).values():
                if record.token[0] > cut + 1:
                    raise _Again

    def _records(self) -> StepsOf[dict[int, Record]]:
        records = {}
        for state, store in self.world.maps.items():
            yield None
            records[state] = store.control or Record(0, (0, 0), 0, ())
        return records

    def _cells(self) -> StepsOf[dict[tuple[int, str], Cell | None]]:
        cells = {}
        for state, store in self.world.maps.items():
            for key in self.world.keys:
                yield None
                cells[state, key] = store.get(key)[0]
        return cells

    def _value(self, cell: Cell | None, records: dict[int, Record], cut: int, reach: int) -> Value:
        if cell is None:
            return None
        if cell.txid <= cut:
            knows = max(records.values(), key=lambda record: record.committed)
            counts = knows.counts(cell.txid, cell.attempt) or not self.rules.attempts
            return cell.curr if counts else cell.prev
        if cell.txid > max(reach, cut + 1) and self.rules.restart:
            raise _Again
        return cell.prev
