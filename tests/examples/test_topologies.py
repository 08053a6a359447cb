"""The examples that run by themselves: what they print, and that a page names them all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.conftest import Ended

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def printed(folder: Path, example: str, *arguments: str) -> list[str]:
    """What an example prints, run by itself in an empty folder, which it leaves empty."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / example), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(folder.iterdir()) == []
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "example", ["transactional_words", "transactional_global_count", "drpc_client", "sessions"]
)
def test_an_example_says_how_it_is_called(tmp_path: Path, example: str) -> None:
    assert printed(tmp_path, f"{example}.py", "--help")[0].startswith(f"usage: {example}.py")


REACHED = [
    "storm.example/trident: [[16]]",
    "spark.example/streams: [[8]]",
    "quiet.example: [[0]]",
    "unknown.example: [[0]]",
]


def test_a_follower_of_several_tweeters_is_reached_once(tmp_path: Path) -> None:
    assert printed(tmp_path, "reach.py") == REACHED


def test_as_many_are_reached_on_spark(run_here: Callable[..., Ended]) -> None:
    done = run_here(EXAMPLES / "reach.py", "--spark")
    assert (done.code, done.errors) == (0, "")
    assert done.out.splitlines() == REACHED


def test_a_user_is_where_the_last_batch_has_seen_him(tmp_path: Path) -> None:
    *batches, answer = printed(tmp_path, "locations.py")
    assert batches == [
        f"batch {txid}: {tuples} tuples, local" for txid, tuples in [(1, 3), (2, 3), (3, 1)]
    ]
    assert answer == 'where("1 2 3 4") = [[1,"Bonn"],[2,"Oslo"],[3,"Kyiv"],[4,null]]'


def test_users_are_in_the_same_places_on_spark(run_here: Callable[..., Ended]) -> None:
    done = run_here(EXAMPLES / "locations.py", "--spark")
    assert (done.code, done.errors) == (0, "")
    *batches, answer = done.out.splitlines()
    assert [batch.rpartition(" ")[2] for batch in batches] == ["spark"] * 3
    assert answer == 'where("1 2 3 4") = [[1,"Bonn"],[2,"Oslo"],[3,"Kyiv"],[4,null]]'


def test_a_view_is_counted_in_its_window_or_as_late(tmp_path: Path) -> None:
    from examples.ad_views import A_BATCH, CAMPAIGNS, EVENTS, event

    counted: Counter[tuple[str, int]] = Counter()
    late: Counter[str] = Counter()
    latest = watermark = 0
    for number in range(EVENTS):
        if number % A_BATCH == 0:
            watermark = latest - 5_000
        _, ad, kind, time = event(number)
        if kind == "view" and ad in CAMPAIGNS:
            start = time // 10_000 * 10_000
            if start + 10_000 <= watermark:
                late[CAMPAIGNS[ad]] += 1
            else:
                counted[CAMPAIGNS[ad], start] += 1
            latest = max(latest, time)
    ended = [key for key in sorted(counted) if key[1] + 10_000 <= latest - 5_000]
    assert len(ended) > 15
    assert min(late[campaign] for campaign in CAMPAIGNS.values()) > 0
    expected = []
    for campaign in sorted({*CAMPAIGNS.values()}):
        windows = [[start, counted[name, start]] for name, start in ended if name == campaign]
        expected.append(f"{campaign}: {windows}, late [[{late[campaign]}]]")
    shown = printed(tmp_path, "ad_views.py")
    assert [re.sub(r",(?! )", ", ", line) for line in shown] == expected


def test_the_first_words_are_those_of_all_batches(tmp_path: Path) -> None:
    assert printed(tmp_path, "top_words.py") == [
        "batch 1: the 3  sat 2  cat 1",
        "batch 2: a 4  cat 3  the 3",
        "batch 3: the 8  a 4  and 4",
    ]


def test_lines_that_are_no_json_count_once_they_are_mended(tmp_path: Path) -> None:
    bad, first, second, mended, same = printed(tmp_path, "json_lines.py")
    assert bad == '[["ann",5],["bob",null],["eve",2]]'
    for letter in (first, second):
        assert letter.startswith("1\tdead_letters.lines\tmap(parsed, ")
    assert "JSONDecodeError: Expecting" in first
    assert "amount" in second
    assert mended == same == '[["ann",8],["bob",7],["eve",2]]'


def test_a_page_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    files = [path.name for path in EXAMPLES.glob("*.py")]
    assert len(files) > 8
    assert [name for name in files if f"]({name})" not in page] == []
