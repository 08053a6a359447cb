"""Kills a copy with SIGKILL at each of its moments in turn, and finishes it: ``source target``."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing, suppress
from typing import Any
from uuid import uuid4

from trident.backends.urls import state_from_url
from trident.errors import UnfinishedCopyError
from trident.states import copy_state
from trident.states.errors import NoStateError
from trident.states.maps.stored_map import StoredMap


def opened(url: str) -> StoredMap:
    state = state_from_url(url).makeState()
    assert isinstance(state, StoredMap)
    return state


def contents(state: StoredMap) -> dict[bytes, bytes]:
    found = dict(state.tables.reading.entries())
    entries = state.kept_as.dumps(list(found.values()), state.serializer)
    return dict(zip(found, entries, strict=True))


def main(source: str, target: str) -> int:
    """Return at how many moments it was killed."""
    killed = 0
    while True:
        url = f"{target}?prefix={uuid4().hex}"
        if not _killed(source, url, killed):
            return killed
        with closing(opened(source)) as one, closing(opened(url)) as other:
            whole = other.backing.getControl() == one.backing.getControl()
            with suppress(UnfinishedCopyError, NoStateError):
                other.multiGet([("word 1",)])
                assert whole, f"half a copy is read, killed at moment {killed}"
            copied = copy_state(one, other)
            assert copied.entries == 5_112
            assert contents(other) == contents(one)
        killed += 1


def _killed(source: str, target: str, moment: int) -> bool:
    """Copy in a process that ends at this call of the target's; return whether it came so far."""
    child = os.fork()
    if child == 0:
        calls = iter(range(sys.maxsize))
        with closing(opened(source)) as one, closing(opened(target)) as other:
            backing: Any = other.backing
            for name in ("putControl", "multiPutFenced", "flush"):
                setattr(backing, name, _counted(getattr(backing, name), calls, moment))
            copy_state(one, other)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)


def _counted(call: Any, calls: Any, moment: int) -> Any:
    def counted(*arguments: Any) -> Any:
        number = next(calls)
        if number == moment and moment % 2:  # before it, every second time
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call(*arguments)
        if number == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return counted


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
