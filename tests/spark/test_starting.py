"""What a terminal shows while Spark starts."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from tests.drpc.asking import until
from trident.spark import starting


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_counts_the_seconds_and_shows_nothing_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(starting, "_EVERY", 0.001)
    with starting.counted_seconds():
        until(lambda: terminal.getvalue().count("\r\033[KStarting Spark ... 0 s") > 2)
    assert terminal.getvalue().endswith("Starting Spark ... 0 s\r\033[K")


@pytest.mark.parametrize("stream", [StringIO(), None])
def test_a_file_or_a_pipe_gets_nothing(
    stream: StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with starting.counted_seconds():
        pass
    assert stream is None or stream.getvalue() == ""
