"""Running the counting program, and reading what it counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests import forks
from tests.crash import counting
from trident.drpc.errors import DRPCExecutionError
from trident.drpc.service import LocalDRPC
from trident.errors import NoStateError


class Counted(NamedTuple):
    """The two states of a group."""

    words: dict[str, int]
    total: int


def run(folder: Path, where: str = "nowhere", number: int = 0) -> int:
    """Run the program to its end, or until it is killed; its return code."""
    ended = forks.run(counting, folder, where, number, timeout=250)
    assert "Traceback" not in ended.printed, ended.printed
    return ended.code


def committed(folder: Path, group: str) -> Counted:
    """What a query finds in the states of a group; nothing where a kill came before they began."""
    with LocalDRPC(counting.topology(folder).plan()) as drpc:
        try:
            rows = json.loads(drpc.execute(group, ""))
        except DRPCExecutionError as error:
            if not isinstance(error.__cause__, NoStateError):
                raise
            rows = []
    totals = {total for *_, total in rows}
    assert len(totals) <= 1
    return Counted({word: count for word, count, _ in rows}, totals.pop() if totals else 0)


def sentences(number: int) -> Counted:
    """What the first so many sentences hold."""
    words = Counter(" ".join(counting.SENTENCES[:number]).split())
    return Counted(dict(words), words.total())


def counted_once(folder: Path) -> bool:
    """Whether both groups have counted every sentence exactly once."""
    expected = sentences(len(counting.SENTENCES))
    return committed(folder, "fixed") == committed(folder, "shifting") == expected
