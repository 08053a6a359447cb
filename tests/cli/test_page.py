"""docs/command-line.md: its commands print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT
from trident.cli.main import COMMANDS, main

PAGE = (ROOT / "docs" / "command-line.md").read_text()
COMMAND = re.compile(r"```sh\npython -m trident (.+)\n```\n(?:\n```text\n((?:.*\n)*?)```\n)?")


def test_the_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    program = re.findall(r"```python\n(.*?)```\n", PAGE, re.DOTALL)
    (tmp_path / "words.py").write_text("\n\n".join(program))
    for words, shown in re.findall(COMMAND, PAGE):
        if "redis" in words:  # of a server that is not there
            continue
        status = main(shlex.split(words))
        said = capsys.readouterr()
        assert not said.err
        assert status == (1 if "bull" in words else 0)
        if shown:
            assert re.sub(r"0\.\d\d s", "0.00 s", said.out) == shown, words


def test_the_page_names_every_command() -> None:
    listed = set(re.findall(r"^\| `([a-z][a-z-]+)", PAGE, re.MULTILINE))
    assert listed == {*COMMANDS}
