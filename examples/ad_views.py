"""Ad analytics: how often the ads of each campaign were viewed, in every ten seconds of event time.

    python examples/ad_views.py

Events are filtered, cut down to what is needed, joined with a table that says to which campaign an
ad belongs, and counted by campaign and window. The table is a static state, which each batch asks
once, for all of its ads together. A window is a field like any other: an event that comes late is
counted where it belongs. Counts are in SQLite, exact whatever is killed, and answer queries while
they grow.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from trident import (
    Count,
    FilterNull,
    GeneratorSpout,
    MapGet,
    MapState,
    TridentTopology,
    state_from_url,
)

CAMPAIGNS = {"ad0": "autumn", "ad1": "autumn", "ad2": "books", "ad3": "coats"}  # no ad4
KINDS = ("view", "click", "view", "purchase")
EVENTS = 1_000
WINDOW = 10_000  # milliseconds


def event(number: int) -> tuple[str, str, str, int]:
    """The event of a number, the same one whenever it is asked for; every seventh comes late."""
    late = 15_000 if number % 7 == 0 else 0
    return f"user{number % 37}", f"ad{number % 5}", KINDS[number % 4], 20_000 + 30 * number - late


def window_of(time: int) -> list[int]:
    """When the window of a time begins."""
    return [time - time % WINDOW]


def is_view(kind: str) -> bool:
    return kind == "view"


def store_campaigns(url: str, campaigns: Mapping[str, str]) -> None:
    """Fill the table, as one batch of its own."""
    table = state_from_url(url).makeState()
    assert isinstance(table, MapState)
    table.beginCommit(1)
    table.multiPut([(ad,) for ad in campaigns], campaigns.values())
    table.commit(1)
    table.close()


def ad_views(url: str, events: int) -> TridentTopology:
    """Describe the counts of so many events, and the query `views` of a campaign."""
    topology = TridentTopology()
    spout = GeneratorSpout("user string, ad string, kind string, time long", event, total=events)
    campaigns = topology.newStaticState(url, name="campaigns")
    views = (
        topology.newStream("events", spout)
        .filter("kind", is_view)
        .project("ad, time")
        .stateQuery(campaigns, "ad", MapGet(), "campaign string")
        .filter("campaign", FilterNull())
        .each("time", window_of, "window long")
        .groupBy("campaign, window")
        .persistentAggregate(url, Count(), "views")
    )
    (
        topology.newDRPCStream("views")
        .each(lambda: range(0, 60_000, WINDOW), "window long")
        .stateQuery(views, "args, window", MapGet(), "views")
        .filter("views", FilterNull())
        .project("window, views")
    )
    return topology


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite://{folder}/ads.db"
        store_campaigns(f"{url}?prefix=campaigns", CAMPAIGNS)
        with ad_views(url, EVENTS).start(checkpoint=Path(folder, "checkpoint")) as run:
            run.processAllAvailable()
            for campaign in sorted({*CAMPAIGNS.values()}):
                print(f"{campaign}: {run.drpc.execute('views', campaign)}")


if __name__ == "__main__":
    main()
