"""Starts a run again that was killed, or ended for a passing cause, where no platform does it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque

from trident.chaos.process import end_with_parent
from trident.cli.main import PASSING

_LONGEST_PAUSE = 30.0
_STOPS = {signal.SIGINT, signal.SIGTERM}


def supervise(restarts: int, within: float) -> int | None:
    """Return None in a process that does the work, and here the exit status when all is over.

    The work is started again where a signal killed it that this process did not pass on, or its
    exit status is `PASSING`; at most `restarts` times in `within` seconds. It ends with this
    process.
    """
    heeded = _STOPS | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heeded)  # they are waited for instead
    times: deque[float] = deque()
    while True:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            end_with_parent()
            os.setpgid(0, 0)  # Ctrl-C is for the parent, which passes it on
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return None
        code, stopped = _wait_for(pid, heeded)
        status = 128 - code if code < 0 else code
        if stopped or not (code < 0 or code == PASSING):
            return status
        now = time.monotonic()
        while times and now - times[0] > within:
            times.popleft()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        if len(times) >= restarts:
            _say(f"it {how}; no restart is left ({restarts} within {within:g} s)")
            return status
        times.append(now)
        pause = min(2.0 ** (len(times) - 1), _LONGEST_PAUSE)
        _say(f"it {how}, and is started again in {pause:g} s ({len(times)} of {restarts})")
        if signal.sigtimedwait(_STOPS, pause) is not None:
            return status


def _wait_for(pid: int, heeded: set[signal.Signals]) -> tuple[int, bool]:
    """Wait for the end of a process; return how it ended, and whether a signal had asked for it."""
    stopped = False
    while True:
        number = signal.sigwait(heeded)
        if number != signal.SIGCHLD:
            os.kill(pid, number)
            stopped = True
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), stopped


def _say(what: str) -> None:
    print(f"python -m trident run: {what}", file=sys.stderr, flush=True)
