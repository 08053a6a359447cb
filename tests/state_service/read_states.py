"""Readers of two states that change together, over HTTP and Thrift, and what they saw."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Thread
from typing import Any

from trident import DRPCClient, StateClient
from trident.drpc.errors import DRPCError
from trident.state_service.requests import Read

KEYS = ("a", "b")

Values = Sequence[int]
"""The values of both keys, in one state or in both."""
Seen = tuple[int | None, Values]
"""A batch, where it was told, and what was read."""


@dataclass
class Reader(Thread):
    """Asks until it is told to end.

    Parameters
    ----------
    label : str
        What it is called.
    client : DRPCClient or StateClient
        Its own.
    ask : callable
        Asks once, by the client.
    """

    label: str
    client: Any
    ask: Callable[[Any], Seen]
    ended: Event
    seen: list[Seen] = field(default_factory=list)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = Thread.__hash__

    def run(self) -> None:
        with self.client:
            try:
                while not self.ended.is_set():
                    self._look()
            except BaseException as error:
                self.failure = error

    def _look(self) -> None:
        try:
            found = self.ask(self.client)
        except DRPCError:  # nobody answers now, or the states have not begun
            self.ended.wait(0.005)
        else:
            if not self.seen or found != self.seen[-1]:
                self.seen.append(found)


def readers(http: str, thrift: str, ended: Event, label: str) -> list[Reader]:
    """Four readers of a server, in all ways that there are."""
    return [
        Reader(f"{label}: query over HTTP", DRPCClient(http), _query, ended),
        Reader(f"{label}: query over Thrift", DRPCClient(thrift), _query, ended),
        Reader(f"{label}: state", StateClient(http), _state, ended),
        Reader(f"{label}: states", StateClient(http), _states, ended),
    ]


def latest_reader(http: str, ended: Event) -> Reader:
    """A reader of what was written last."""
    return Reader("latest", StateClient(http), partial(_states, read="latest"), ended)


def _query(client: DRPCClient) -> Seen:
    rows = json.loads(client.execute("both", " ".join(KEYS)))
    return None, [value or 0 for row in rows for value in row]


def _state(client: StateClient) -> Seen:
    found = client.multiGet("two", KEYS)
    return found.txid or 0, [value or 0 for value in found.values]


def _states(client: StateClient, read: Read = "committed") -> Seen:
    found: Mapping[str, Any] = client.batchGet({"one": KEYS, "two": KEYS}, read=read)
    one, two = found["one"], found["two"]
    assert one.txid == two.txid or read == "latest"
    return one.txid or 0, [value or 0 for value in (*one.values, *two.values)]


def wrong(seen: Sequence[Seen], sums: Mapping[int, int]) -> list[Seen]:
    """What was seen and is no committed prefix, or of an earlier batch than what was seen before.

    Parameters
    ----------
    seen : sequence of Seen
        What a reader saw, in its order.
    sums : mapping of int to int
        What each batch has left, by its number.
    """
    found = []
    before = 0
    for txid, values in seen:
        whole = len({*values}) == 1 and values[0] in (
            sums.values() if txid is None else [sums.get(txid)]
        )
        if not whole or values[0] < before:
            found.append((txid, values))
        before = max(before, values[0])
    return found
