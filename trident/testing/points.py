"""Kills, holds or fails a run when a batch reaches a given point.

The points are those of :data:`POINTS`; a batch passes them in this order, in the thread that runs
it, on the driver. A batch that is staged passes those of :data:`STAGING_POINTS` as well.
"""

from __future__ import annotations

import difflib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from trident.batch.watchpoints import POINTS, STAGING_POINTS, watching
from trident.states.errors import FailedException
from trident.states.values import Token


@contextmanager
def kill_at(point: str, txid: int | None = None) -> Iterator[None]:
    """Kill this process with SIGKILL when a batch reaches `point`: nothing is cleaned up.

    Parameters
    ----------
    point : str
        One of :data:`POINTS`.
    txid : int, optional
        Only this batch; by default whichever comes first.

    Examples
    --------
    >>> with kill_at("after commit", txid=3):
    ...     pass  # run the topology here, in a process of its own
    """
    with _done_at(point, txid, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        yield


class Hold:
    """A batch that is held, or will be."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._released = threading.Event()

    def wait_reached(self, timeout: float = 60.0) -> None:
        """Wait until a batch is held.

        Raises
        ------
        TimeoutError
            When none is within `timeout` seconds.
        """
        if not self._reached.wait(timeout):
            raise TimeoutError(f"no batch came to the held point within {timeout} s")

    def release(self) -> None:
        """Let the held batch, and all that follow, go on; may be repeated."""
        self._released.set()

    def _stop_here(self) -> None:
        self._reached.set()
        self._released.wait()


@contextmanager
def hold_at(point: str, txid: int | None = None) -> Iterator[Hold]:
    """Hold the batch that reaches `point` until it is released, or the block ends.

    Parameters
    ----------
    point : str
        One of :data:`POINTS`.
    txid : int, optional
        Only this batch; by default every one until the release.

    Examples
    --------
    >>> with hold_at("before commit") as hold:
    ...     pass  # start a run, hold.wait_reached(), look around, hold.release()
    """
    hold = Hold()
    with _done_at(point, txid, hold._stop_here):
        try:
            yield hold
        finally:
            hold.release()


@contextmanager
def fail_at(point: str, txid: int | None = None, *, times: int = 1) -> Iterator[None]:
    """Fail the first attempts that reach `point` with a FailedException, so they are retried.

    Parameters
    ----------
    point : str
        One of :data:`POINTS`, up to ``"before commit"``, or ``"before stage"``: what is committed
        can't fail.
    txid : int, optional
        Only this batch.
    times : int
        How many attempts.
    """
    check_point(point)
    if point not in ("before stage", *POINTS[: POINTS.index("after commit")]):
        raise ValueError(f"fail_at: {point!r} comes when the batch can't fail any more")
    left = times

    def fail() -> None:
        nonlocal left
        if left:
            left -= 1
            raise FailedException(f"failed {point} on request")

    with _done_at(point, txid, fail):
        yield


def _done_at(point: str, txid: int | None, act: Callable[[], None]) -> AbstractContextManager[None]:
    """Does something whenever a batch, or this one, reaches `point`."""
    check_point(point)

    def watch(reached: str, token: Token) -> None:
        if reached == point and txid in (None, token.txid):
            act()

    return watching(watch)


def check_point(point: str) -> None:
    """Raise ValueError where a batch passes no such point."""
    points = (*POINTS, *STAGING_POINTS)
    if point not in points:
        nearest = difflib.get_close_matches(point, points, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"no point {point!r}; there are: {', '.join(points)}.{hint}")
