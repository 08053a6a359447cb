"""Ad analytics: how often the ads of each campaign were viewed, in every ten seconds of event time.

    python examples/ad_views.py

Events are filtered, cut down to what is needed, joined with a table that says to which campaign an
ad belongs, and counted in windows. The table is a static state, which each batch asks once, for all
of its ads together. Windows are by the time of the events: one ends when events have come that are
five seconds later, and what comes later still is counted apart. Open windows, finished ones and the
table are in SQLite, exact whatever is killed, and answer queries meanwhile.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from trident import (
    Count,
    Duration,
    FilterNull,
    GeneratorSpout,
    MapGet,
    Sum,
    TridentTopology,
    TumblingDurationWindow,
    fill,
)

CAMPAIGNS = {"ad0": "autumn", "ad1": "autumn", "ad2": "books", "ad3": "coats"}  # no ad4
KINDS = ("view", "click", "view", "purchase")
EVENTS = 2_000
A_BATCH = 250
SECONDS = range(0, 90, 10)


def event(number: int) -> tuple[str, str, str, int]:
    """The event of a number, the same one whenever it is asked for; some come late."""
    late = 3_000 if number % 7 == 0 else 20_000 if number % 101 == 0 else 0
    return f"user{number % 37}", f"ad{number % 5}", KINDS[number % 4], 20_000 + 30 * number - late


def is_view(kind: str) -> bool:
    return kind == "view"


def ad_views(url: str, events: int) -> TridentTopology:
    """Describe the counts of so many events, and the queries `views` and `late` of a campaign."""
    topology = TridentTopology()
    spout = GeneratorSpout(
        "user string, ad string, kind string, time long", event, batch=A_BATCH, total=events
    )
    campaigns = topology.newStaticState(url, name="campaigns")
    ten_seconds = TumblingDurationWindow.of(Duration.seconds(10)).withTimestampField("time")
    windows = (
        topology.newStream("events", spout)
        .filter("kind", is_view)
        .project("ad, time")
        .stateQuery(campaigns, "ad", MapGet(), "campaign string")
        .filter("campaign", FilterNull())
        .groupBy("campaign")
        .window(ten_seconds.withLag(Duration.seconds(5)), url, Count(), "views", name="open")
    )
    views = windows.groupBy("campaign, windowStart").persistentAggregate(
        url, "views", Sum(), "finished"
    )
    late = windows.lateStream().groupBy("campaign").persistentAggregate(url, Count(), "late")
    (
        topology.newDRPCStream("views")
        .each(lambda: [1_000 * second for second in SECONDS], "start long")
        .stateQuery(views, "args, start", MapGet(), "views")
        .filter("views", FilterNull())
        .project("start, views")
    )
    topology.newDRPCStream("late").stateQuery(late, "args", MapGet(), "late").project("late")
    return topology


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite://{folder}/ads.db"
        fill(f"{url}?prefix=campaigns", CAMPAIGNS)
        with ad_views(url, EVENTS).start(checkpoint=Path(folder, "checkpoint")) as run:
            run.processAllAvailable()
            for campaign in sorted({*CAMPAIGNS.values()}):
                views, late = (run.drpc.execute(query, campaign) for query in ("views", "late"))
                print(f"{campaign}: {views}, late {late}")


if __name__ == "__main__":
    main()
