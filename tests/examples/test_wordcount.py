"""`examples/wordcount.py` as its user runs it: what it counts, and what it says when it cannot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.examples.conftest import Ended

WORDCOUNT = Path(__file__).parents[2] / "examples" / "wordcount.py"
LONG_AGO = 946684800  # 1 January 2000


@dataclass(frozen=True)
class Screen:
    """What one run printed."""

    code: int
    out: str
    errors: str

    @property
    def new_words(self) -> int:
        return self._number(r"([\d,]+) new words")

    @property
    def batches(self) -> int:
        return self._number(r"([\d,]+) batch(?:es)?, ")

    @property
    def question(self) -> list[str]:
        found = re.search(r'words\("(.+)"\)', self.out)
        assert found is not None, self.out + self.errors
        return found[1].split()

    @property
    def answer(self) -> int:
        return self._number(r'words\(".+"\) = \[\[(\d+)\]\]')

    @property
    def top(self) -> dict[str, int]:
        found = re.findall(r"^ +([\d,]+)  (\S+)$", self.out, re.MULTILINE)
        return {word: int(count.replace(",", "")) for count, word in found}

    def _number(self, pattern: str) -> int:
        found = re.search(pattern, self.out)
        assert found is not None, self.out + self.errors
        return int(found.group(1).replace(",", ""))


def wordcount(text: Path, data: Path) -> Screen:
    done = subprocess.run(
        [sys.executable, str(WORDCOUNT), "--data", str(data), str(text)],
        cwd=WORDCOUNT.parent,
        env={**os.environ, "PYTHONPATH": str(WORDCOUNT.parents[1])},
        capture_output=True,
        text=True,
        timeout=240,
    )
    return Screen(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder of text with what makes listing hard: blanks, wildcards, folders, old dates."""
    folder = tmp_path / "my [text] #1"
    (folder / "below" / "a=1").mkdir(parents=True)
    (folder / "one.txt").write_text("The cat sat on the mat.\nthe CAT!\n")
    (folder / "below" / "two.txt").write_text("A man, a dog; Ärger and émigrés.\n")
    (folder / "below" / "a=1" / "one.txt").write_text("the end\n")
    (folder / "_passed_over.txt").write_text("cat cat cat\n")
    return folder


@pytest.fixture
def counted() -> Counter[str]:
    return Counter("the cat sat on the mat the cat a man a dog ärger and émigrés the end".split())


def test_each_text_is_counted_once_over_all_runs(
    text: Path, counted: Counter[str], tmp_path: Path, run_here: Callable[..., Ended]
) -> None:
    def wordcount_here(text: Path) -> Screen:
        return Screen(*run_here(WORDCOUNT, "--data", str(tmp_path / "data"), str(text)))

    first = wordcount(text, tmp_path / "data")
    assert first.code == 0, first.errors
    assert first.top["the"] == counted["the"] == 4
    assert first.new_words == counted.total()
    assert first.question == ["the", "a", "cat"]
    assert first.answer == sum(counted[word] for word in first.question)
    assert "exactly once" in first.out
    assert first.errors == ""

    of_file = wordcount_here(text / "one.txt")  # a count of its own
    assert of_file.code == 0, of_file.errors
    assert of_file.top == {"the": 3, "cat": 2, "mat": 1, "on": 1, "sat": 1}
    assert of_file.new_words == 8

    dropped = text / "dropped.txt"
    dropped.write_text("the dog\n")
    os.utime(dropped, (LONG_AGO, LONG_AGO))
    again = wordcount_here(text)
    assert again.new_words == 2
    assert again.batches == 1
    assert f"text goes on after batch {first.batches}\n" in again.out
    assert again.top["the"] == counted["the"] + 1
    assert again.question == first.question
    assert again.answer == first.answer + 1


def test_without_a_text_the_documentation_of_python_is_counted(
    tmp_path: Path, run_here: Callable[..., Ended]
) -> None:
    screen = Screen(*run_here(WORDCOUNT, "--data", str(tmp_path / "data")))
    assert screen.code == 0, screen.errors
    files = list((tmp_path / "data" / "python-documentation").iterdir())
    words = Counter(
        word
        for file in files
        for word in re.findall(r"[^\W\d_]+", file.read_text(encoding="utf-8").lower())
    )
    assert screen.new_words == words.total()
    assert screen.top == dict(words.most_common(10))
    assert screen.question == list(screen.top)[:3]
    assert screen.answer == sum(words[word] for word in screen.question)
    assert screen.batches > 1
    assert screen.errors == ""


def one_paragraph(screen: Screen) -> str:
    assert screen.code == 1
    assert "Traceback" not in screen.errors
    said = screen.errors.strip()
    assert "\n\n" not in said
    return " ".join(said.split())


def test_a_run_that_was_killed_before_its_state_was_there_has_counted_nothing(
    tmp_path: Path,
) -> None:
    database = tmp_path / "counts.db"
    database.touch()
    asked = (
        "import pathlib, sys, wordcount; "
        "sys.exit(len(wordcount.counts_in(pathlib.Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked, str(database)],
        cwd=WORDCOUNT.parent,
        env={**os.environ, "PYTHONPATH": str(WORDCOUNT.parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_missing_text_is_named(tmp_path: Path) -> None:
    said = one_paragraph(wordcount(tmp_path / "nothing", tmp_path / "data"))
    assert f"There is no {tmp_path / 'nothing'}." in said


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = one_paragraph(wordcount(tmp_path / "empty", tmp_path / "data"))
    assert "has no files yet" in said


def test_a_place_that_cannot_be_written_is_named(text: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = one_paragraph(wordcount(text, tmp_path / "file" / "data"))
    assert f"{tmp_path / 'file' / 'data'}" in said


def test_counts_are_not_kept_inside_the_text(text: Path) -> None:
    said = one_paragraph(wordcount(text, text / "data"))
    assert "Keep them elsewhere" in said


def test_a_file_that_spark_passes_over_is_refused(text: Path, tmp_path: Path) -> None:
    said = one_paragraph(wordcount(text / "_passed_over.txt", tmp_path / "data"))
    assert "rename it" in said
