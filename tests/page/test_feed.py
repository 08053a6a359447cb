"""What watchers of a page cost, and what they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from tests.page.made_up import figures, query, word_count
from trident.page.content import Content, content_of
from trident.page.feed import Feed

PLANS = [word_count().to_dict()]


def made(**given: Any) -> Content:
    return content_of(figures(**given), PLANS)


class Looking:
    """Looks up what it is told to, and counts how often."""

    def __init__(self, *found: Content) -> None:
        self.found = list(found)
        self.times = 0

    def __call__(self) -> Content:
        self.times += 1
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]


async def events(feed: Feed, count: int) -> list[Any]:
    """The first events of a watcher; comments are none."""
    found: list[Any] = []
    stream = feed.events()
    async for part in stream:
        if part.startswith(b"data: "):
            found.append(json.loads(part.removeprefix(b"data: ")))
        if len(found) == count:
            break
    await stream.aclose()
    return found


def ran(feed: Feed, what: Callable[[], Any]) -> Any:
    try:
        return asyncio.run(what())
    finally:
        feed.close()


def test_a_watcher_is_told_all_and_then_what_has_changed() -> None:
    looking = Looking(made(), made(), made(txid=8))
    feed = Feed(looking, every=0.01)
    first, second = ran(feed, lambda: events(feed, 2))
    assert first["status"] == "running"
    assert {"groups", "errors", "queries"} <= first["rows"].keys()
    assert second.keys() == {"texts", "rows"}
    assert second["texts"] == {"group-0": "running · batch 8 · 1,234 tuples/s"}
    assert second["rows"].keys() == {"groups"}


def test_watchers_together_cost_one_look() -> None:
    looking = Looking(made())
    feed = Feed(looking, every=60)

    async def many() -> list[Any]:
        return await asyncio.gather(*(events(feed, 1) for _ in range(50)))

    assert len(ran(feed, many)) == 50
    assert looking.times == 1
    assert feed.watching == 0


def test_nobody_is_looked_up_for_nobody() -> None:
    looking = Looking(made())
    Feed(looking, every=0.01).close()
    assert looking.times == 0


def test_a_feed_is_full_when_as_many_watch_as_may() -> None:
    feed = Feed(Looking(made()), every=60, most=1)

    async def one() -> tuple[bool, bool]:
        before = feed.full
        stream = feed.events()
        await anext(stream)
        during = feed.full
        await stream.aclose()
        return before, during

    assert ran(feed, one) == (False, True)
    assert not feed.full


def test_figures_that_can_not_be_had_end_nothing() -> None:
    looks = iter([ValueError("away"), made()])

    def look() -> Content:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    feed = Feed(look, every=0.01)
    assert len(ran(feed, lambda: events(feed, 1))) == 1


def test_a_look_that_hangs_is_not_waited_for() -> None:
    hangs = Event()
    found = iter([made(), None])

    def look() -> Content:
        now = next(found)
        if now is None:
            hangs.wait()
        return now or made(txid=8)

    feed = Feed(look, every=0.0, patience=0.05)

    async def twice() -> tuple[Content, Content]:
        return await feed.latest(), await feed.latest()

    first, second = ran(feed, twice)
    hangs.set()
    assert first is second


def test_a_first_look_that_hangs_is_a_time_out() -> None:
    hangs = Event()

    def look() -> Content:
        hangs.wait()
        return made()

    feed = Feed(look, patience=0.05)
    with pytest.raises(TimeoutError):
        ran(feed, feed.latest)
    hangs.set()


def test_a_closed_feed_ends_what_is_watched() -> None:
    feed = Feed(Looking(made()), every=0.01)

    async def until_closed() -> int:
        parts = 0
        async for _ in feed.events():
            parts += 1
            feed.close()
        return parts

    assert ran(feed, until_closed) == 1


def test_names_that_have_no_utf8_end_nothing() -> None:
    odd = "odd \ud800"
    feed = Feed(Looking(made(group=odd, failures={odd: 1}, seconds={odd: 1.0})), every=0.01)
    (first,) = ran(feed, lambda: events(feed, 1))
    assert first["rows"]["failures"] == [[r"odd \ud800"] * 2 + ["1"]]


def test_what_is_not_told_is_shown_as_such() -> None:
    told = figures(lag=None, txid=None, seconds={}, batches=0, failures={}, errors=[], recent=[])
    told["queries"] = [query(p50=None, p99=None)]
    now = content_of(told, PLANS)
    assert now.texts["group-0"] == "running · no batch yet · 1,234 tuples/s"
    assert now.texts["query-0"] == "12 calls"
    for table in ("steps", "failures", "errors", "recent"):
        assert now.rows[table] == [("none",)]
    elsewhere = {"status": "elsewhere", "since": None, "groups": [], "queries": []}
    assert content_of(elsewhere, PLANS).texts["group-0"] == "runs elsewhere"
