"""Running ``python -m trident chaos``, and reading what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.conftest import ROOT


@dataclass(frozen=True)
class Said:
    """What the command has said.

    Parameters
    ----------
    status : int
        Its exit status.
    text : str
        Its output.
    errors : str
        What it wrote to the other one.
    """

    status: int
    text: str
    errors: str

    @property
    def kills(self) -> int:
        """How often drivers, and with Spark what is below them, were killed."""
        return self._number(r"^  kills: ([\d,]+)")

    @property
    def lost(self) -> int:
        return self._number(r"^  lost: (\d+)")

    @property
    def duplicated(self) -> int:
        return self._number(r"^  duplicated: (\d+)")

    @property
    def torn(self) -> int:
        return self._number(r"^  torn reads: (\d+)")

    @property
    def reads(self) -> int:
        return self._number(r"^  torn reads: \d+ of ([\d,]+)")

    @property
    def main(self) -> str:
        """What was said of the topology, before that for comparison."""
        return self.text.partition("for comparison")[0]

    @property
    def take_overs(self) -> int:
        """How many drivers were stopped, and continued when another one had taken over."""
        return self._number(r"^  continued after a take-over: ([\d,]+)")

    @property
    def compared(self) -> list[int]:
        """How much was lost or duplicated by each of what can't be exact."""
        compared = self.text.partition("for comparison")[2]
        found = re.findall(r"^  lost: (\d+)\n  duplicated: (\d+)$", compared, re.M)
        return [int(lost) + int(duplicated) for lost, duplicated in found]

    def _number(self, pattern: str) -> int:
        # The last: lines of progress come before
        found = re.findall(pattern, self.main, re.M)
        assert found, self.text + self.errors
        return int(found[-1].replace(",", ""))


def chaos(folder: Path, *words: str) -> Said:
    """Run the command in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "trident", "chaos", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    return Said(done.returncode, done.stdout, done.stderr)
