"""The clock of requests that update states: a thread that runs a batch of those that wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Self

from trident.batch.computed import Computed, Postponed
from trident.batch.errors import BatchInterruptedError
from trident.batch.group_run import GroupRun
from trident.batch.outcome import Outcome
from trident.batch.runner import BatchRunner
from trident.batch.work import BatchWork
from trident.drpc.calls import Answer, Call, CallQueue, WaitingCalls
from trident.drpc.errors import DRPCClosedError, DRPCInternalError
from trident.drpc.query import failure_of
from trident.drpc.request_engine import RequestEngine, blames_request
from trident.states.control import ControlRecord
from trident.states.errors import FailedException
from trident.states.values import Token

MOST_TOGETHER = 64
"""Requests in a batch."""
MOST_WAITING = 1_000
"""Requests that the queue takes."""
RETRIES = 3
"""The least number of attempts after the first, also if the run's batches have fewer: a request
that is to blame is found in the second attempt at the latest."""


class RequestLoop(GroupRun, CallQueue):
    """The queue of a function that updates a state, and the batches that empty it.

    A batch holds the requests that wait when it begins. Each is answered when the batch is
    committed and announced, so whoever has the answer can read what it has changed.
    """

    def __init__(self, engine: RequestEngine, runner: BatchRunner) -> None:
        super().__init__(runner.group, runner.monitor)
        self.function = engine.function
        self._engine = engine
        self._runner = runner
        self._changed = threading.Condition()
        self._waiting = WaitingCalls(self.function, MOST_WAITING)
        self._busy = False
        self._thread = threading.Thread(
            target=self._run, name=f"trident-{runner.group}", daemon=True
        )

    def put(self, call: Call) -> None:
        with self._changed:
            self._waiting.add(call)
            self._changed.notify_all()

    def leave(self, call: Call) -> None:
        """Take a call out of the queue, if no batch has taken it."""
        with self._changed:
            self._waiting.remove(call)

    def close(self, seconds: float) -> None:
        """Take no more calls, and wait `seconds` at most until the others are answered."""
        self.request_stop()
        if self._thread.ident is not None:
            self._ended.wait(seconds)

    def start(self) -> Self:
        self._thread.start()
        return self

    def request_stop(self) -> None:
        """Take no more calls, answer the others, and end; doesn't wait."""
        self._runner.stopping.set()
        with self._changed:
            self._waiting.closed = True
            self._changed.notify_all()

    def stop(self) -> None:
        super().stop()
        self._thread.join()

    def processAllAvailable(self) -> None:
        """Wait until no call waits; raise what the group failed with."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._busy) or not self.isActive)
        self._raise_failure()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            while calls := self._take():
                self._answer(calls)
        except BatchInterruptedError:
            pass  # asked for by stop()
        except BaseException as error:
            failure = error
        finally:
            with self._changed:
                self._waiting.closed = True
                unanswered = self._waiting.take_all()
            for call in unanswered:
                call.end(DRPCClosedError(self.function))
        try:
            self._engine.close()
        except BaseException as error:
            failure = failure or error
        self.ended(failure)
        with self._changed:
            self._changed.notify_all()

    def _take(self) -> list[Call]:
        """Wait for the calls of the next batch; an empty list ends the loop."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._waiting.closed)
            most = 1 if self._engine.one_by_one else MOST_TOGETHER
            calls = self._waiting.take(most)
            self._busy = bool(calls)
            return calls

    def _answer(self, calls: Sequence[Call]) -> None:
        """Run batches until all calls are answered."""
        unanswered = deque(calls)
        together = len(unanswered)
        try:
            while unanswered:
                work = RequestWork(self._engine, list(islice(unanswered, together)))
                progress = self._runner.run(work)
                if work.unwritable:
                    # An attempt with several would fail again, until their time is over.
                    together = 1
                for answer in work.answers:
                    unanswered.popleft().end(answer)
                self.progressed(progress)
        except BaseException as error:
            cause = f"the run ended meanwhile, and whether it has committed isn't known: {error}"
            for call in unanswered:
                call.end(DRPCInternalError(self.function, call.args, cause))
            raise


class RequestWork(BatchWork):
    """A batch of requests.

    If their updates can't be written, the next attempt has only the first of them, as it isn't
    known which one is to blame.
    """

    def __init__(self, engine: RequestEngine, calls: Sequence[Call]) -> None:
        self._engine = engine
        self._calls = calls
        self._refused: Exception | None = None
        self.answers: list[Answer] = []
        """The answers to the first requests of the batch."""
        self.unwritable = False
        """Whether their updates couldn't be written."""

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        return True  # even if the only request was refused: an attempt may have written parts

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        try:
            answers, outcome = self._engine.run(record, [] if self._refused else self._calls)
        except Exception as error:
            if not blames_request(error):
                raise
            if len(self._calls) == 1:
                self._refused = failure_of(self._engine.function, self._calls[0].args, error)
            self.unwritable = True
            self._calls = self._calls[:1]
            raise FailedException(f"what a request updates can't be written: {error}") from error
        self.answers = [self._refused] if self._refused else answers
        return outcome
