"""Hands what happens in a batch group to its figures, its listeners and the log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from time import monotonic, time
from typing import Any

from trident.batch.events import AttemptFailed, Event, GroupEnded, GroupStarted
from trident.batch.listening import Listening
from trident.batch.monitor import Monitor
from trident.batch.progress import BatchProgress
from trident.figures.group_figures import GroupFigures
from trident.figures.reasons import class_of, frame_of, message_of, reason_of
from trident.states.values import Token

_logger = logging.getLogger("trident")
_SILENCE = 60.0
"""Seconds between warnings of tuples that are late, and of bad ones."""


class GroupMonitor(Monitor):
    """What is known of a group while it runs."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._figures = GroupFigures(time())
        self._began: GroupStarted | None = None
        self._end: GroupEnded | None = None
        self._listening: tuple[Listening, ...] = ()
        # So that a listener gets one event after the other, the start first; a callback may listen
        # itself.
        self._telling = threading.RLock()
        self._teller: int | None = None
        self._silent_until = self._silent_of_bad_until = 0.0
        self._bad = 0

    @property
    def calls_listener(self) -> bool:
        return self._teller == threading.get_ident()

    def listen(self, listening: Listening) -> None:
        """Tell of the start, in this thread, and then of each event, in the thread of the event.

        If the group has ended, tell of its end at once.
        """
        with self._telling:
            for event in (self._began, self._end):
                if event is not None:
                    self._tell_one(listening, event)
            if self._end is None:
                others = [each for each in self._listening if not each.stopped]
                self._listening = (*others, listening)

    def started(
        self, due: Token, *, recovered: bool, under_way: bool, committed: int | None
    ) -> None:
        self._figures.begin(committed)
        self._began = GroupStarted(self.group, *due, recovered, under_way, time())
        _logger.info("%s", self._began.text)

    def attempt_failed(self, token: Token, error: Exception, seconds: float) -> None:
        event = AttemptFailed(
            self.group,
            *token,
            reason_of(error),
            class_of(error),
            message_of(error),
            frame_of(error),
            seconds,
            time(),
        )
        self._figures.failed(event)
        self._tell(event)

    def figures(self) -> Mapping[str, Any]:
        return self._figures.to_dict()

    def corrected(self, progress: BatchProgress, more: int) -> None:
        self._figures.corrected(more)
        if more == progress.tuples:  # nothing was known of them when the batch was finished
            self._warn_of_late(progress)

    def finished(self, progress: BatchProgress) -> None:
        self._figures.add(progress)
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("%s", _line(progress))
        self._warn_of_late(progress)
        if progress.bad_tuples or self._bad:
            self._warn_of_bad(progress)
        if self._listening:
            self._tell(progress)

    def _warn_of_late(self, progress: BatchProgress) -> None:
        """Warn if more than a hundredth of a batch came too late, once a minute at most."""
        if not 0 < progress.tuples < 100 * progress.late or monotonic() < self._silent_until:
            return
        self._silent_until = monotonic() + _SILENCE
        _logger.warning(
            "%s: %d of the %d tuples of batch %d came too late for their windows, and are not in "
            "them. withLag() lets windows wait for tuples that are out of order, and lateStream() "
            "has those that are late (docs/windows.md)",
            *(self.group, progress.late, progress.tuples, progress.txid),
        )

    def _warn_of_bad(self, progress: BatchProgress) -> None:
        """Warn of the tuples that were left out since the last warning, once a minute at most."""
        self._bad += sum(progress.bad_tuples.values())
        if monotonic() < self._silent_of_bad_until:
            return
        self._silent_of_bad_until = monotonic() + _SILENCE
        _logger.warning(
            "%s: steps have failed with %d tuples up to batch %d, which were left out; "
            "run.figures() counts them by step",
            *(self.group, self._bad, progress.txid),
        )
        self._bad = 0

    def ended(self, failure: BaseException | None) -> None:
        if failure is None:
            end = GroupEnded(self.group, "stopped", None, None, None, time())
            _logger.info("%s stopped, %s", self.group, self._last())
        else:
            reason, error, message = reason_of(failure), class_of(failure), message_of(failure)
            end = GroupEnded(self.group, "failed", reason, error, message, time())
            # The text of an error may show values; it is raised, and the figures have it.
            _logger.info("%s failed with %s (%s), %s", self.group, error, reason, self._last())
            self._figures.ended(end, frame_of(failure))
        with self._telling:
            self._end = end
            self._tell(end)
            self._listening = ()

    def _tell(self, event: Event) -> None:
        if self._listening:
            with self._telling:
                for listening in self._listening:
                    self._tell_one(listening, event)

    def _tell_one(self, listening: Listening, event: Event) -> None:
        before, self._teller = self._teller, threading.get_ident()
        try:
            listening.tell(event)
        finally:
            self._teller = before

    def _last(self) -> str:
        last = self._figures.txid
        return "no batch is committed" if last is None else f"the last batch was {last}"


def _line(done: BatchProgress) -> str:
    if not done.attempts:
        return f"batch {done.txid} of {done.group} was committed before"
    took = " ".join(f"{step} {1000 * took:.2f}" for step, took in done.seconds.items())
    fate = "" if done.dead_letter is None else ", dead-lettered"
    return (
        f"batch {done.txid} of {done.group}: {done.tuples} tuples, {done.keys_read} keys read, "
        f"{done.keys_written} written, {done.cache_hits} from caches, attempts {done.attempts}"
        f"{fate}; ms: {took}"
    )
