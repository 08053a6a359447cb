"""Prints the files that a written value passes, from the update of a state to its store's driver.

A profile hook watches every call while a batch combines one number into a state and commits. A
file is passed where one of its functions is handed the number, in whatever form: as it is, in a
list or an entry, or in bytes. What is the operation's own is left out.

Run ``python -m tests.value_way`` for SQLite and a Redis server of the moment, or give the URLs of
empty states.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from trident.backends.urls import state_from_url
from trident.operations.builtin import Max
from trident.testing.servers.redis import RedisServer

_LIBRARY = Path(__file__).resolve().parents[1]
_PARTS = ("states", "backends")
_NUMBER = 987_654_321_987
_TEXT = str(_NUMBER).encode()
_DEPTH = 4


def files_passed(url: str) -> list[str]:
    """Return the files that a number passes on its way into the state of a URL, in order."""
    state = state_from_url(url).makeState()
    passed: dict[str, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _handed(frame):
            file = Path(frame.f_code.co_filename).resolve()
            if file.is_relative_to(_LIBRARY) and file.relative_to(_LIBRARY).parts[0] in _PARTS:
                passed[str(file.relative_to(_LIBRARY))] = None

    for txid, number in ((1, 1), (2, _NUMBER)):  # the first batch connects
        state.beginCommit(txid)
        sys.setprofile(watch if number == _NUMBER else None)
        try:
            state.multiFold([b"key"], [number], Max())
            state.commit(txid)
        finally:
            sys.setprofile(None)
    state.close()
    return list(passed)


def _handed(frame: FrameType) -> bool:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    given = [frame.f_locals[name] for name in code.co_varnames[:count] if name != "self"]
    return any(_holds(each, _DEPTH) for each in given)


def _holds(given: Any, depth: int) -> bool:
    if type(given) is int:
        return given == _NUMBER
    if isinstance(given, str):
        return _TEXT.decode() in given
    if isinstance(given, bytes | bytearray | memoryview):
        return _TEXT in bytes(given)
    if not depth:
        return False
    if isinstance(given, Mapping):
        return any(_holds(each, depth - 1) for each in given.values())
    return isinstance(given, Sequence) and any(_holds(each, depth - 1) for each in given)


def _urls(stack: ExitStack) -> Iterator[str]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    yield f"sqlite:{folder}/way.db?prefix=way"
    server = stack.enter_context(RedisServer(folder))
    yield f"{server.url}?prefix=way"


def main(urls: Sequence[str]) -> None:
    """Print the files of each state."""
    with ExitStack() as stack:
        for url in urls or _urls(stack):
            passed = files_passed(url)
            print(f"{url.partition(':')[0]}: {len(passed)} files")
            for file in passed:
                print(f"  {file}")


if __name__ == "__main__":
    main(sys.argv[1:])
