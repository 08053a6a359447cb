"""Control characters in texts of others reach no log, no explanation and no error as they are."""

from __future__ import annotations

import io
import logging
import pickle
import sys
import threading
import unicodedata
from collections.abc import Iterator

import pytest

from trident import Count, DRPCClient, FixedBatchSpout, MemoryMapState, TridentTopology
from trident.cli.main import main
from trident.cli.shown import json_text
from trident.drpc.errors import DRPCExecutionError, UnknownFunctionError
from trident.states.errors import FailedException, StateUnavailableError
from trident.states.printable import Lines, one_line, printable

NASTY = "one\x1b[2J\x9b31m\r\n2026 ERROR fake\u202e\u2028\ud800\x00"


def odd(text: str) -> set[str]:
    """What a terminal would act on."""
    return {
        each
        for each in text
        if unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") or each in "\u202e\ufeff"
    }


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What a handler writes of this thread's records: others may still end earlier tests."""
    text, thread = io.StringIO(), threading.get_ident()
    handler = logging.StreamHandler(text)
    handler.addFilter(lambda record: record.thread == thread)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("trident")
    logger.addHandler(handler)
    yield text
    logger.removeHandler(handler)


@pytest.mark.slow
def test_every_control_character_is_made_printable() -> None:
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        is_odd = unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")
        assert (one_line(letter) != letter) >= is_odd, hex(number)
        assert not odd(one_line(letter))
    assert odd(printable(NASTY)) == {"\n"}


def test_what_is_printable_stays_as_it_is() -> None:
    text = "the cat, ü, 🐄, Ω, 中文, العربية and \\n"
    assert one_line(text) is text or one_line(text) == text


def test_a_message_is_one_line_whatever_its_arguments_hold(logged: io.StringIO) -> None:
    logging.getLogger("trident").warning("%s of %d: %s", NASTY, 5, ValueError(NASTY))
    logging.getLogger("trident").warning(NASTY)
    lines = logged.getvalue().split("\n")
    assert len(lines) == 3
    assert lines[0].startswith("WARNING one\\u001b[2J\\u009b31m\\r\\n2026 ERROR fake\\u202e")
    assert not odd("".join(lines))


def test_a_traceback_in_the_log_begins_no_line_as_a_record_does(logged: io.StringIO) -> None:
    try:
        raise ValueError(NASTY)
    except ValueError:
        logging.getLogger("trident").warning("failed", exc_info=True)
    first, *others = logged.getvalue().rstrip("\n").split("\n")
    assert first == "WARNING failed"
    assert any("2026 ERROR fake" in line for line in others)
    assert all(line.startswith("  ") for line in others)
    assert not odd("".join(others))


def test_lines_of_ours_stay_lines_and_long_messages_are_cut(logged: io.StringIO) -> None:
    logging.getLogger("trident").warning("all:\n%s", Lines("one\ntwo\x1b"))
    logging.getLogger("trident").warning("%s", "a" * 10**6)
    assert logged.getvalue().startswith("WARNING all:\none\n  two\\u001b\n")
    assert len(logged.getvalue()) < 3000
    assert "… 998,000 characters …" in logged.getvalue()


@pytest.mark.parametrize(
    "error",
    [
        FailedException(NASTY),
        StateUnavailableError(NASTY, NASTY, NASTY),
        UnknownFunctionError("f", [NASTY]),
        DRPCExecutionError("f", NASTY, NASTY),
    ],
)
def test_the_text_of_an_error_has_ends_of_lines_only(error: Exception) -> None:
    assert odd(str(error)) <= {"\n"}
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_explanation_has_a_line_a_step_whatever_names_hold() -> None:
    topology = TridentTopology()
    name = NASTY.replace("\ud800", "").replace("\0", "")
    words = topology.newStream(name, FixedBatchSpout("word string", 1)).groupBy("word")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "n", name=name)
    for text in (topology.explain(), topology.to_mermaid(), topology.to_svg()):
        assert odd(text) == {"\n"}
    assert not any(line.startswith("2026") for line in topology.explain().split("\n"))


def test_values_that_commands_print_are_the_same_json_without_control_characters() -> None:
    shown = json_text({"a": "b\x9b\u202e\x1b\n"})
    assert shown == r'{"a":"b\u009b\u202e\u001b\n"}'


def test_what_a_command_fails_with_is_printed_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nasty = NASTY.replace("\ud800", "").replace("\0", "")
    for words in (["explain", f"{nasty}:topology"], ["state", "info", f"redis://{nasty}"]):
        assert main(words) == 2
        shown = capsys.readouterr().err
        assert odd(shown) <= {"\n"}
    with pytest.raises(SystemExit):
        main(["explain", "one:topology", nasty])
    assert odd(capsys.readouterr().err) <= {"\n"}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_answer_is_made_printable_for_a_terminal_only(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Output(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    answer = '[["\x9b2J"]]'
    monkeypatch.setattr(DRPCClient, "execute", lambda *_: answer)
    monkeypatch.setattr(sys, "stdout", Output())
    assert main(["drpc", "localhost", "words"]) == 0
    assert isinstance(sys.stdout, Output)
    assert sys.stdout.getvalue() == ('[["\\u009b2J"]]\n' if is_terminal else f"{answer}\n")
