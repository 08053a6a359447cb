"""`examples/sessions.py`: what it prints, also where its run had been stopped half-way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "sessions.py"
VISITS = """\
  ann, 09:00 to 09:42: /, /about, /shop
  bob, 09:02 to 09:50: /news, /
  ann, 09:50 to 10:28: /, /shop
  bob, 10:00 to 10:30: /news
  cid, 11:00 to 11:30: /
  late: bob at 09:25, /shop
"""
KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import sessions
from trident.testing import kill_at
with kill_at("before write", 3):
    sessions.main(Path(sys.argv[2]))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-u", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_it_prints_the_visits_that_are_over_and_the_click_that_was_late() -> None:
    done = run(str(EXAMPLE))
    assert done.stdout == (
        f"Visits that are over:\n{VISITS}4 batches, 11 clicks, 1 of them late\n"
    ), done.stderr


def test_open_visits_survive_a_kill(tmp_path: Path) -> None:
    first = run("-c", KILLED, str(EXAMPLE.parent), str(tmp_path))
    second = run(str(EXAMPLE), str(tmp_path))
    assert second.stdout.startswith("Visits that are over:\n"), second.stderr
    printed = [line for line in (first.stdout + second.stdout).splitlines() if line[0] == " "]
    assert printed == VISITS.splitlines()
