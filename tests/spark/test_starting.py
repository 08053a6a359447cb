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
    with starting.count_seconds():
        until(lambda: terminal.getvalue().count("\r\033[KStarting Spark ... 0 s") > 2)
    assert terminal.getvalue().endswith("Starting Spark ... 0 s\r\033[K")


@pytest.mark.parametrize("stream", [StringIO(), None, object()])
def test_a_file_or_a_pipe_gets_nothing(stream: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with starting.count_seconds():
        pass
    assert not isinstance(stream, StringIO) or stream.getvalue() == ""


@pytest.mark.parametrize("early", [True, False])
def test_spark_starts_also_where_the_error_output_is_closed(
    early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    if early:
        terminal.close()
    with starting.count_seconds():
        terminal.close()
