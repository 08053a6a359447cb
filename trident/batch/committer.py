"""Commits what was computed, in order: in a thread of its own, or at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PENDING_BYTES = 256 * 1024 * 1024
"""How many bytes the batches that are computed and not committed may take in memory, roughly."""


class Pending(Generic[T, R]):
    """A batch that is computed and waits for its commit."""

    def __init__(self, batch: T) -> None:
        self.batch = batch
        # Locked until its end: an Event would cost each batch a dozen calls more.
        self._under_way = threading.Lock()
        self._under_way.acquire()
        self._result: R | None = None
        self._failure: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it is committed, has failed, or was discarded."""
        return not self._under_way.locked()

    def end(self, result: R | None = None, failure: BaseException | None = None) -> None:
        """Set its result or its failure; neither if it was discarded."""
        self._result, self._failure = result, failure
        self._under_way.release()

    def forget_failure(self) -> None:
        """Let go of its failure: the two refer to each other, and would keep the tuples."""
        self._failure = None

    def wait(self) -> R | None:
        """Wait for its end; return None if it was discarded, raise what it failed with."""
        with self._under_way:
            pass
        if self._failure is not None:
            raise self._failure
        return self._result


class Committer(Generic[T, R]):
    """Commits batches in order, in a thread of its own; one that fails discards those behind it."""

    def __init__(self, commit: Callable[[T], R | None], name: str) -> None:
        self._commit = commit
        self._batches: SimpleQueue[Pending[T, R] | None] = SimpleQueue()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def take(self, batch: T) -> Pending[T, R]:
        """Commit `batch` after those that were taken before it."""
        pending: Pending[T, R] = Pending(batch)
        self._batches.put(pending)
        return pending

    def go_on(self) -> None:
        """Commit again, after a failure, once all batches behind it were discarded."""
        self._failed = False

    def close(self) -> None:
        """End the thread, after the batches that it was given; may be repeated."""
        self._batches.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (pending := self._batches.get()) is not None:
            self._commit_one(pending)
            del pending  # so that nothing holds its tuples while the thread waits for another

    def _commit_one(self, pending: Pending[T, R]) -> None:
        if self._failed:
            pending.end()
            return
        try:
            pending.end(self._commit(pending.batch))
        except BaseException as failure:
            self._failed = True  # before a waiter wakes, who may have the next one committed
            pending.end(failure=failure)


def is_full(pending: Sequence[Pending[Any, Any]], most: int) -> bool:
    """Whether another batch, if it is as large as the last one, has no room."""
    if len(pending) >= most:
        return True
    sizes: list[int] = [each.batch.nbytes for each in pending]
    return sum(sizes) + sizes[-1] > PENDING_BYTES
