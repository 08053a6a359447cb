"""A driver: takes over the log, then places, begins, runs, commits and announces batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from tests.protocol.model.shared import (
    Cell,
    Entry,
    Halted,
    Named,
    Record,
    Stale,
    Steps,
    StepsOf,
    Stopped,
    Stored,
    Token,
    Unavailable,
)

if TYPE_CHECKING:
    from tests.protocol.model.world import World

_RETRIES = 2


class Driver:
    """One process that drives the batches of a log."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.world = world
        self.rules = world.rules
        self.log = world.log
        self.caches: dict[int, dict[str, Stored]] = {0: {}, 1: {}}
        self.entry: Entry
        self.read: Entry | None = None
        self.file: int | None = None
        self.ahead: tuple[int, int] | None = None
        self.digest: int | None = None
        self.left: dict[int, Record] = {}
        self.incarnations: dict[int, int] = {}
        self.failures = 0
        self.touched = False
        self.looked = False
        self.named: dict[int, tuple[Named, ...]] = {}
        self.position = 0
        self.tried = 0

    def run(self) -> Steps:
        try:
            yield from self._open()
            while True:
                yield self._due
                yield from self._batch(self.entry.begun)
        except (Stopped, Unavailable):
            return
        except Halted as reason:
            self.world.halted = str(reason)

    def _due(self) -> bool:
        return self.position < self.world.goal

    def _open(self) -> Steps:
        yield None
        newest = self.read = self.log.newest()
        if newest is None:
            begun = (1, self._behind(0))
            first = Entry(1, self.name, begun, 0, (), (None, None), None, ())
            yield from self._append(first)
        elif self.rules.begin_first:
            txid, attempt = newest.begun
            again = attempt + 1 if self.rules.new_attempt else attempt
            if not newest.committed:
                again = self._behind(again)
            yield from self._append(newest._replace(number=newest.number + 1, begun=(txid, again)))
        else:
            self.entry = newest
        self.position = self.world.source_done
        if self.rules.announce_at_start:
            yield from self._announce_committed()
        self.world.promise(self.log, self.entry.committed)

    def _behind(self, attempt: int) -> int:
        """An attempt of the first batch behind those that other logs have begun."""
        records = [store.control for store in self.world.stores]
        left = [r.token[1] + 1 for r in records if r and r.log_id != self.log.log_id]
        return max([attempt, *left]) if self.rules.abandoned_behind else attempt

    def _announce_committed(self) -> Steps:
        """Announce at every state what the log has committed."""
        committed = self.entry.committed
        for states in self._together((0, 1)):
            yield None
            news = {}
            for state in states:
                stored = self.world.stores[state].control
                try:
                    self._judge(state, stored, self.entry.begun)
                except Stale:
                    self._overtaken()
                if stored is None or stored.log_id != self.log.log_id:
                    continue
                if stored.committed < committed >= stored.token[0]:
                    news[state] = stored
            yield from self._put_announced(news)

    def _append(self, entry: Entry) -> Steps:
        """Append, once more where that failed, whether the entry is there by now or not."""
        entry = entry._replace(writer=self.name)
        while True:
            try:
                if self.world.setup.together:
                    yield from self._append_to_table(entry)
                elif self.file is None:
                    yield from self._append_to_new(entry)
                else:
                    yield from self._append_to_own(entry, self.file)
                return
            except Unavailable:
                self.file = None

    def _append_to_table(self, entry: Entry) -> Steps:
        """A log in a database: one step looks for the newest entry, and writes behind it."""
        yield None
        newest = self.log.newest()
        if newest != entry:  # else it was written, and only the answer was lost
            if newest != self.read and self.rules.together_own_entry:
                raise Stopped
            self.log.files.setdefault(1, []).append(entry)
        self.entry = self.read = entry
        self.world.committed(self.log, entry)
        yield None

    def _append_to_own(self, entry: Entry, number: int) -> Steps:
        yield None
        newest = self.log.newest()
        if newest and not self.rules.own_entry:
            entry = entry._replace(number=newest.number + 1)
            number = max(self.log.files)
        self.log.files.get(number, []).append(entry)
        yield from self._counts(entry, number)

    def _append_to_new(self, entry: Entry) -> Steps:
        """Claim the next file, look whether the log is as it was read, write into the file."""
        log, rules = self.log, self.rules
        yield None
        number = max(log.files, default=0) + 1
        if not rules.claim_first and not self._is_as_read(entry):
            raise Stopped
        yield None
        if number in log.files and rules.exclusive:
            raise Stopped
        claimed = log.files[number] = []
        if rules.claim_first:
            yield None
            if not self._is_as_read(entry):
                log.files.pop(number, None)
                raise Stopped
        yield None
        claimed.append(entry)
        yield from self._counts(entry, number)
        self.file = number
        yield None
        log.purge(number)

    def _is_as_read(self, entry: Entry) -> bool:
        return not self.rules.own_entry or self.log.newest() in (self.read, entry)

    def _counts(self, entry: Entry, number: int) -> Steps:
        yield None
        if self.rules.listing and max(self.log.files) > number:
            raise Stopped
        self.entry = self.read = entry
        self.world.committed(self.log, entry)

    def _batch(self, token: Token) -> Steps:
        txid = self.position + 1
        if self.rules.place and txid != self.entry.committed + 1:
            if txid > self.entry.committed:
                raise Stopped
            yield None
            self._took(txid)
            return
        yield from self._try((txid, token[1]))

    def _try(self, token: Token) -> Steps:
        """One attempt; where it fails after a state may have begun it, reserve the next."""
        try:
            yield from self._attempt(token)
            self.failures = 0
        except (Unavailable, Stale):
            self.failures += 1
            if self.rules.discard:
                self.ahead = None
            yield from self._again(token[0])

    def _took(self, txid: int) -> None:
        """The source notes, in its own log, that it needn't ask for this batch again."""
        self.position = txid
        if self.log is self.world.log:
            self.world.source_done = max(self.world.source_done, txid)

    def _again(self, txid: int) -> Steps:
        yield None
        newest = self.log.newest()
        if newest is None or (newest.writer != self.name and self.rules.own_entry):
            raise Stopped
        if self.entry.committed >= txid:
            return
        if self.rules.new_attempt and self.touched:
            begun, attempt = self.entry.begun
            again = self.entry._replace(number=newest.number + 1, begun=(begun, attempt + 1))
            yield from self._append(again)

    def _attempt(self, token: Token) -> Steps:
        world, rules = self.world, self.rules
        self.touched = self.looked = False
        self.named = {}
        given_up = world.gives_up and self.failures >= _RETRIES
        if given_up:
            self.ahead = None
        if given_up and not rules.dead_letter:
            yield from self._commit((token[0], token[1] - 1), None, ())
            return
        emission = yield from self._content(token[0])
        if self.ahead is None and not given_up:
            self._emit_ahead(token[0] + 1, emission)
        touched = world.touched(token[0], emission)
        if not touched:
            yield from self._commit(token, emission, ())
            return
        states = (0, 1) if rules.begin_every_state else touched
        entry = self.entry
        plan = None if self.world.setup.staged else entry.planned
        reached = world.reached(entry.history)
        if not rules.expired_committed:
            self.tried = reached = max(self.tried, reached, world.time(token[0], emission))
        record = Record(
            *(self.log.log_id, token, entry.committed, entry.retried), plan=plan, reached=reached
        )
        read: dict[tuple[int, str], Stored] = {}
        if world.setup.early and not given_up:
            read = yield from self._read(token[0], emission)
        self.touched = True
        for state in states:
            yield from self._begin(state, record)
        if not given_up:
            yield from self._run(record, emission, read)
        if world.setup.sweeps and rules.swept:
            yield from self._sweep(record)
        if world.setup.expires and world.setup.ability == "fenced":
            yield from self._expire(record, world.time(token[0], emission))
        marked = record._replace(ready=rules.mark)
        ready = {state: marked._replace(named=self.named.get(state, ())) for state in states}
        for state in states:
            yield None
            store = world.stores[state]
            if rules.rows_counted and not store.is_whole(ready[state]):
                raise Unavailable
            if not store.put_control(ready[state], record, True):
                raise Unavailable
            yield None
            if rules.ready and not store.confirms(ready[state], self.incarnations[state]):
                raise Unavailable
            store.settle()
        committed = self._committed(token, None if given_up else emission, states)
        if world.setup.together:
            yield from self._commit_together(committed, ready)
        else:
            if not rules.rows_logged:
                yield from self._announce(ready)
            yield from self._append(committed)
            yield from self._announce(ready)
        yield None
        self._finished(token[0])

    def _sweep(self, record: Record) -> Steps:
        """Rewrite the entries of batches that were tried again, so that each means one thing."""
        for store in self.world.maps.values():
            for key in self.world.keys:
                yield None
                cell, version = store.get(key)
                if cell is None or cell.txid not in dict(record.retried):
                    continue
                counts = record.counts(cell.txid, cell.attempt)
                value = cell.curr if counts else cell.prev
                yield None
                if not store.write(key, Cell(cell.txid, 0, value, value), record, version):
                    raise Stale

    def _expire(self, record: Record, own: int) -> Steps:
        """Remove what has expired, whatever is there by then."""
        world, rules = self.world, self.rules
        moment = record.reached if rules.expired_before else max(record.reached, own)
        for store in world.maps.values():
            for key in world.keys:
                yield None
                cell, _ = store.get(key)
                if cell is None or (cell[:2] == record.token and rules.expired_own):
                    continue
                counts = cell.txid < record.token[0] and record.counts(cell.txid, cell.attempt)
                if world.alive(cell.curr if counts else cell.prev, moment) is None:
                    yield None
                    if rules.expired_fenced and not store.admits(record):
                        raise Stale
                    store.drop(key)

    def _content(self, txid: int) -> StepsOf[int]:
        """The emission that this attempt processes."""
        before = dict(self.entry.history).get(txid - 1)
        if self.world.setup.kind != "transactional" or not self.rules.planned:
            return self._emitted(txid, before)
        if self.entry.planned is None:
            plan = self._emitted(txid, before)
            yield from self._append(self.entry._replace(number=self.entry.number + 1, planned=plan))
        assert self.entry.planned is not None
        return self.entry.planned

    def _emit_ahead(self, txid: int, before: int) -> None:
        """While a batch is written the next is emitted, from what this one has emitted."""
        self.ahead = (txid, self.world.emit(txid, before))

    def _finished(self, txid: int) -> None:
        """The batch is committed, and announced if it could be."""
        self._took(txid)

    def _emitted(self, txid: int, before: int | None) -> int:
        """What was emitted ahead, or is emitted now from what the batch before has emitted."""
        ahead = self.ahead
        if ahead is not None and ahead[0] == txid:
            self.ahead = None
            return ahead[1]
        return self.world.emit(txid, before)

    def _read(self, txid: int, emission: int) -> StepsOf[dict[tuple[int, str], Stored]]:
        """Read what the batch updates, before it begins."""
        read = {}
        self.looked = self.rules.looked_first
        for state, store in enumerate(self.world.stores):
            if self.rules.looked_first and state not in self.left:
                yield None
                self.incarnations[state] = store.server.incarnation
            mapped = state in self.world.maps
            for operation in self.world.operations(txid, emission, state) if mapped else ():
                yield None
                read[state, operation.key] = store.get(operation.key)
        return read

    def _begin(self, state: int, record: Record) -> Steps:
        store = self.world.stores[state]
        left = self.left.pop(state, None)
        if left is not None:  # what this driver left needs no look, nor a judgement
            yield None
            if store.put_control(record, left, True):
                yield from store.after_begin()
                yield None
                return
        if not self.looked:
            yield None
            self.incarnations[state] = store.server.incarnation
        yield None
        stored = store.control
        try:
            self._judge(state, stored, record.token)
        except Stale:
            self._overtaken()
        yield None
        if self.rules.begin_compared and store.control != stored:
            raise Unavailable
        if self.rules.rows_merged_first:
            yield from self._merge_beside(state, record.token)
        store.put_control(record, None, False)
        yield from store.after_begin()
        yield None

    def _merge_beside(self, state: int, own: Token) -> Steps:
        """In the step that begins at a table: merge what waits there, and in those beside it.

        None of them is merged if one has lost it.
        """
        for states in self._together((0, 1)):
            found = {each: self.world.stores[each].control for each in states if state in states}
            waiting = {s: stored for s, stored in found.items() if self._is_unmerged(stored, s)}
            for each, stored in found.items() if waiting else ():
                self._judge(each, stored, (own[0], own[1] + 1))
            yield from self._put_announced(waiting)

    def _is_unmerged(self, stored: Record | None, state: int) -> TypeGuard[Record]:
        """Whether a table lacks what the log has committed and this record has made ready."""
        if state in self.world.maps:
            return False
        if stored is None or not stored.ready or stored.committed >= stored.token[0]:
            return False
        if not self.rules.rows_listed:
            return stored.token[0] <= self.entry.committed
        return stored.token == self.entry.listed[state]

    def _judge(self, state: int, stored: Record | None, own: Token) -> None:
        """Stop at a record that isn't what the log left; `own` is the attempt it has reserved."""
        rules, entry, listed = self.rules, self.entry, self.entry.listed[state]
        if stored is None:
            if listed and rules.lost:
                raise Halted("lost")
        elif stored.log_id != self.log.log_id:
            if rules.log_id and not self._is_abandoned(stored, own):
                raise Halted("log_id")
        elif listed and stored.token < listed:
            if rules.rewound:
                raise Halted("rewound")
        elif stored.token == listed and stored.committed < listed[0]:
            if rules.lost_writes and not stored.ready:
                raise Halted("lost writes")
        elif stored.token >= own:
            if rules.begin_compared:
                raise Stale
        elif rules.other_copy and _written_by_another_copy(stored, entry):
            raise Halted("another copy of the log")
        elif rules.never_begun and stored.token != listed and _is_committed(stored, entry):
            raise Halted("another copy has begun what this one has committed as empty")
        elif rules.same_plan and _has_another_plan(stored, entry, own):
            raise Halted("another plan")

    def _is_abandoned(self, stored: Record, own: Token) -> bool:
        """Whether another log's record says that nothing of it was ever made ready."""
        rules, entry = self.rules, self.entry
        if self.world.setup.kind != "opaque" and rules.abandoned_opaque:
            return False
        if (stored.ready or stored.committed) and rules.abandoned_unready:
            return False
        attempt = dict(entry.retried).get(1, 0) if entry.committed else own[1]
        return stored.token < (1, attempt) or not rules.abandoned_behind

    def _overtaken(self) -> None:
        """A later attempt has begun: that of another driver, or of another copy of the log."""
        newest = self.log.newest()
        if self.rules.other_copy and newest and newest.writer == self.name:
            raise Halted("another copy of the log")
        raise Stopped

    def _run(self, record: Record, emission: int, read: dict[tuple[int, str], Stored]) -> Steps:
        group = self.world.spawn(self, record, emission, read)
        tasks = self.world.tasks[group]
        yield lambda: "failed" in tasks.values() or set(tasks.values()) == {"done"}
        if "failed" in tasks.values():
            raise Unavailable
        self.named = self.world.named(group)

    def _commit(self, token: Token, emission: int | None, began: tuple[int, ...]) -> Steps:
        yield from self._append(self._committed(token, emission, began))
        if not began:
            self._finished(token[0])

    def _committed(self, token: Token, emission: int | None, began: tuple[int, ...]) -> Entry:
        """The entry that commits an attempt."""
        txid, attempt = token
        entry = self.entry
        retried = {} if self.world.setup.sweeps and began else dict(entry.retried)
        if attempt:
            retried[txid] = attempt
        if not self.rules.retried_kept:
            retried = {old: kept for old, kept in retried.items() if old >= txid - 1}
        return entry._replace(
            number=entry.number + 1,
            begun=(txid + 1, 0),
            committed=txid,
            retried=tuple(sorted(retried.items())),
            listed=(
                token if 0 in began else entry.listed[0],
                token if 1 in began else entry.listed[1],
            ),
            planned=None,
            history=(*entry.history, (txid, emission)),
            digest=self.digest,
            writer=self.name,
        )

    def _commit_together(self, entry: Entry, ready: dict[int, Record]) -> Steps:
        """Write the entry and merge the rows, in one transaction of the tables' database."""
        stores, written = self.world.stores, self.log.files[1]
        yield None
        if self.rules.together_own_entry and self.log.newest() != self.entry:
            raise Stopped
        written.append(entry)
        self.entry = self.read = entry
        self.world.committed(self.log, entry)
        for state, record in ready.items():
            stores[state].merge(record)
            stores[state].put_control(self._announced(record), record, False)
            self.left[state] = self._announced(record)
        try:
            yield None
        except Unavailable:  # the answer is lost: it looks whether its entry is there
            yield None
            if self.log.newest() != entry:
                raise Stopped from None
        self.world.promise(self.log, entry.committed)

    def _announce(self, ready: dict[int, Record]) -> Steps:
        """Announce what this driver has made ready."""
        stores = self.world.stores
        txid = max(record.token[0] for record in ready.values())
        try:
            for states in self._together(tuple(ready)):
                yield None
                news = {}
                for state in states:
                    stored, record = stores[state].control, ready[state]
                    if stored == record or not self.rules.announce_own:
                        news[state] = record
                    elif stored is None or stored.token < record.token or stored.committed < txid:
                        raise Halted("lost writes")
                    self.left[state] = self._announced(record)
                yield from self._put_announced(news)
        except Unavailable:
            return
        self.world.promise(self.log, txid)

    def _announced(self, record: Record) -> Record:
        entry = self.entry
        if self.rules.rows_logged or record.token[0] <= entry.committed:
            reached = self.world.reached(entry.history)
            announced = record._replace(committed=entry.committed, retried=entry.retried)
            return announced._replace(plan=None, reached=reached)
        txid, attempt = record.token
        retried = (*entry.retried, (txid, attempt)) if attempt else entry.retried
        return record._replace(committed=txid, retried=retried, plan=None)

    def _together(self, states: Sequence[int]) -> list[list[int]]:
        """These states, those together that are announced in one transaction."""
        if self.rules.rows_together:
            return self.world.by_server(states)
        return [[state] for state in states]

    def _put_announced(self, news: dict[int, Record]) -> Steps:
        """Put the announced form of these records, and merge their rows, in one transaction.

        It has locked the records before it has read them: nothing comes between.
        """
        rules, stores = self.rules, self.world.stores
        if not news:
            return
        if not rules.rows_locked:
            yield None
        unmerged = {
            state: record
            for state, record in news.items()
            if self._is_unmerged(record, state) or not rules.rows_logged
        }
        if not all(stores[state].is_whole(record) for state, record in unmerged.items()):
            raise Halted("lost writes")
        with stores[min(news)].server.transaction():
            for state, record in unmerged.items():
                stores[state].merge(record)
            if rules.rows_with_record:
                for state, record in news.items():
                    stores[state].put_control(self._announced(record), record, False)
        if not rules.rows_with_record:
            yield None
            for state, record in news.items():
                stores[state].put_control(self._announced(record), record, False)


def _has_another_plan(stored: Record, entry: Entry, own: Token) -> bool:
    return stored.token[0] == own[0] and stored.plan not in (None, entry.planned)


def _is_committed(stored: Record, entry: Entry) -> bool:
    txid, attempt = stored.token
    return txid <= entry.committed and attempt == dict(entry.retried).get(txid, 0)


def _written_by_another_copy(stored: Record, entry: Entry) -> bool:
    txid, attempt = stored.token
    if stored.committed > entry.committed:
        return True
    if txid <= entry.committed and attempt > dict(entry.retried).get(txid, 0):
        return True
    known = tuple(pair for pair in entry.retried if pair[0] <= stored.committed)
    return stored.retried != known
