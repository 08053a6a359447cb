"""One attempt of a batch, emitted and computed, before any store is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, time_ns
from typing import Any, NamedTuple

from trident.batch.computed import NOTHING_COMPUTED, Computed, Computing, Postponed
from trident.batch.work import BatchWork
from trident.log.entry import ACTIVE, MOMENT, plans_of_streams
from trident.states.values import Token


class Due(NamedTuple):
    """What an attempt is made from: the metadata of the batch before, and the log's plan."""

    token: Token
    metadata: Mapping[str, Any]
    planned: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """An attempt that is made, and only has to be written.

    A staged batch is computed once, and written in attempts of any number. `planned` is in the log
    before the attempt begins, its commit stores `metadata`, and `active` is what its watermark
    waits for, if the log needn't have it. If there is nothing to write, `computed` is None, and no
    state begins it. An attempt with a `dead_letter`, the reason, is given up: it is neither
    computed nor written.
    """

    token: Token
    work: BatchWork
    planned: Mapping[str, Any] | None
    metadata: Mapping[str, Any]
    active: Mapping[str, Sequence[str]]
    computed: Computed | Computing | Postponed | None
    watch: Stopwatch
    dead_letter: str | None = None

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes are kept until it is written."""
        return self.computed.nbytes if self.computed else 0

    def result(self) -> Computed | Postponed | None:
        """Wait until it is computed; raise what its steps have failed with."""
        return self.computed.result() if isinstance(self.computed, Computing) else self.computed

    def discard(self) -> None:
        """Wait until nothing runs for it any more."""
        if isinstance(self.computed, Computing):
            self.computed.wait()

    @property
    def following(self) -> Due:
        """What the next batch is made from, while this one is not committed."""
        return Due(Token(self.token.txid + 1, 0), self.metadata)


@dataclass(frozen=True)
class Making:
    """How attempts are made, without any store or log; `now` gives nanoseconds since 1970.

    If they are `timed` the log has the time of each batch; if `partitioned`, a watermark waits for
    partitions; if `ageing`, the time of batches lets entries of states expire.
    """

    timed: bool = False
    now: Callable[[], int] | None = None
    partitioned: bool = False
    ageing: bool = False

    def moment(self) -> int:
        """The time now, in milliseconds since 1970."""
        return (self.now or time_ns)() // 1_000_000

    def make(self, work: BatchWork, due: Due, dead_letter: str | None = None) -> Attempt:
        """Plan, emit and compute an attempt, or only emit one that is given up; repeatable."""
        token, metadata, planned = due
        watch = Stopwatch()
        if planned is None:
            planned = work.plan(token.txid, metadata)
        if self.timed and MOMENT not in (planned or {}):
            planned = {**(planned or {}), MOMENT: self.moment()}
        watch.done("plan")
        known = planned or {}
        to_run = work.emit(token, metadata, known)
        watch.done("emit")
        active: Mapping[str, Sequence[str]] = {}
        if self.partitioned and ACTIVE not in known:
            active = work.active
        if to_run and work.emitted_plan:
            known = planned = {**known, **work.emitted_plan}
            if active:
                known = planned = {**known, ACTIVE: active}
        computed: Computed | Computing | Postponed | None = None
        if to_run and dead_letter is None:
            computed = work.compute(token)
            watch.done("run")
        elif to_run:
            work.drop()
            computed = NOTHING_COMPUTED
        following = {**metadata, **work.emitted_metadata}
        if known:
            following = {**metadata, **plans_of_streams(known), **work.emitted_metadata}
        return Attempt(token, work, planned, following, active, computed, watch, dead_letter)


class Stopwatch:
    """Measures the parts of an attempt, one after the other; starts when it is made."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = self._since = perf_counter()

    def done(self, part: str) -> None:
        """Note that `part` has taken the time since the part before it; it may have several."""
        now = perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now

    def go_on(self) -> None:
        """Go on now, after a wait that belongs to no part."""
        self._since = perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return perf_counter() - self._began
