"""Sessions of visitors: what each did between two breaks, by the time of the clicks.

    python examples/sessions.py [FOLDER]

Clicks come out of order, and one too late. In a folder of yours open sessions are kept: a run that
is killed and started again goes on with them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from trident import (
    CombinerAggregator,
    Duration,
    FixedBatchSpout,
    SessionWindow,
    TridentTopology,
    TridentTuple,
)
from trident.backends import sqlite

CLICKS = [
    ("ann", "09:00", "/"),
    ("bob", "09:02", "/news"),
    ("ann", "09:12", "/shop"),
    ("ann", "09:05", "/about"),  # out of order, within the lag
    ("bob", "09:20", "/"),
    ("ann", "09:50", "/"),  # more than half an hour later: another visit
    ("bob", "10:00", "/news"),
    ("ann", "09:58", "/shop"),
    ("cid", "11:00", "/"),
    ("bob", "09:25", "/shop"),  # too late: that visit is over
    ("ann", "13:00", "/"),
]
PER_BATCH = 3


class Pages(CombinerAggregator[list[str]]):
    """The pages of a visit, in the order of the clicks' times."""

    output_types = ("array<string>",)

    def init(self, tuple: TridentTuple) -> list[str]:
        return [f"{tuple['time']} {tuple['page']}"]

    def combine(self, a: list[str], b: list[str]) -> list[str]:
        return sorted(a + b)

    def zero(self) -> list[str]:
        return []


def moment(time: str) -> list[int]:
    """The time of a click, in milliseconds."""
    hour, minute = map(int, time.split(":"))
    return [(hour * 60 + minute) * 60_000]


def clock(milliseconds: int) -> str:
    """A time as the clock shows it."""
    return "{:02}:{:02}".format(*divmod(milliseconds // 60_000, 60))


def show_visit(user: str, pages: list[str], start: int, end: int) -> None:
    """Print a visit that is over."""
    seen = ", ".join(page.partition(" ")[2] for page in pages)
    print(f"  {user}, {clock(start)} to {clock(end)}: {seen}")


def show_late(user: str, time: str, page: str, at: int) -> None:
    """Print a click that came too late for its visit."""
    print(f"  late: {user} at {time}, {page}")


def visits(folder: Path) -> TridentTopology:
    """Describe the topology; nothing runs yet."""
    topology = TridentTopology()
    clicks = FixedBatchSpout("user string, time string, page string", PER_BATCH, *CLICKS)
    window = (
        SessionWindow.of(Duration.minutes(30))
        .withTimestampField("at")
        .withLag(Duration.minutes(10))
    )
    sessions = (
        topology.newStream("clicks", clicks)
        .each("time", moment, "at long")
        .groupBy("user")
        .window(window, sqlite.opaque(folder / "visits.db"), "time, page", Pages(), "pages")
    )
    sessions.peek(show_visit)
    sessions.lateStream().peek(show_late)
    return topology


def main(folder: Path) -> None:
    print("Visits that are over:")
    with visits(folder).start(checkpoint=folder / "checkpoint", trigger="available") as run:
        run.awaitTermination()
        progress = run.groups["clicks"].recentProgress
    late = sum(batch.late for batch in progress)
    print(f"{len(progress)} batches, {len(CLICKS)} clicks, {late} of them late")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the visits to a site.")
    parser.add_argument("folder", nargs="?", type=Path, help="keeps open sessions (default: none)")
    given = parser.parse_args().folder
    if given:
        main(given)
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
