"""The examples that run by themselves: what they print, and that the README names them all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_follower_of_several_tweeters_is_reached_once(tmp_path: Path) -> None:
    assert printed(tmp_path, "reach.py") == [
        "storm.example/trident: [[16]]",
        "spark.example/streams: [[8]]",
        "quiet.example: [[0]]",
        "unknown.example: [[0]]",
    ]


def test_a_user_is_where_the_last_batch_has_seen_him(tmp_path: Path) -> None:
    *batches, answer = printed(tmp_path, "locations.py")
    assert batches == [
        f"batch {txid}: {tuples} tuples, local" for txid, tuples in [(1, 3), (2, 3), (3, 1)]
    ]
    assert answer == 'where("1 2 3 4") = [[1,"Bonn"],[2,"Oslo"],[3,"Kyiv"],[4,null]]'


@pytest.mark.spark
def test_users_are_in_the_same_places_on_spark(tmp_path: Path) -> None:
    *batches, answer = printed(tmp_path, "locations.py", "--spark")
    assert [batch.rpartition(" ")[2] for batch in batches] == ["spark"] * 3
    assert answer == 'where("1 2 3 4") = [[1,"Bonn"],[2,"Oslo"],[3,"Kyiv"],[4,null]]'


def test_a_late_view_of_an_ad_is_counted_where_it_belongs(tmp_path: Path) -> None:
    from examples.ad_views import CAMPAIGNS, EVENTS, event

    views: dict[str, dict[int, int]] = {campaign: {} for campaign in CAMPAIGNS.values()}
    for _, ad, kind, time in map(event, range(EVENTS)):
        if kind == "view" and ad in CAMPAIGNS:
            counted = views[CAMPAIGNS[ad]]
            counted[time // 10_000] = counted.get(time // 10_000, 0) + 1
    assert min(views["autumn"]) < 2, "no view comes late"
    rows = {
        campaign: [[window * 10_000, count] for window, count in sorted(counted.items())]
        for campaign, counted in views.items()
    }
    assert printed(tmp_path, "ad_views.py") == [
        f"{campaign}: {rows[campaign]}".replace(", ", ",") for campaign in sorted(rows)
    ]


def test_the_first_words_are_those_of_all_batches(tmp_path: Path) -> None:
    assert printed(tmp_path, "top_words.py") == [
        "batch 1: the 3  sat 2  cat 1",
        "batch 2: a 4  cat 3  the 3",
        "batch 3: the 8  a 4  and 4",
    ]


def test_the_readme_names_every_example() -> None:
    readme = (ROOT / "README.md").read_text()
    files = [path.name for path in EXAMPLES.glob("*.py")]
    assert len(files) > 8
    assert [name for name in files if f"](examples/{name})" not in readme] == []
