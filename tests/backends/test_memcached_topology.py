"""Topologies that count into Memcached, while its nodes are in trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trident import Count, FixedBatchSpout, Split, TridentTopology, TridentTuple
from trident.backends import memcached
from trident.states.errors import CorruptStateError, LostStateError, StateUnavailableError
from trident.states.maps.factory import MapStateFactory
from trident.storm import Consumer
from trident.testing.servers.memcached import MemcachedServer, MemcachedServers

BATCHES = (("the cat sat",), ("the man walked",), ("the dog ran the whole way",))
COUNTS = {"the": 4, "cat": 1, "sat": 1, "man": 1, "walked": 1, "dog": 1, "ran": 1, "way": 1}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[MemcachedServer]]:
    """Two nodes to be hurt."""
    with MemcachedServers(tmp_path / "servers") as made:
        yield made.nodes


@pytest.fixture
def state(servers: list[MemcachedServer]) -> MapStateFactory:
    nodes = [f"{server.host}:{server.port}" for server in servers]
    return memcached.opaque(nodes, "words", timeout=0.5)


class Trouble(Consumer):
    """Does something, once, when it meets a line."""

    def __init__(self, line: str, make: Callable[[], object]) -> None:
        self.line = line
        self.make = make
        self.made = False

    def accept(self, tuple: TridentTuple) -> None:
        if tuple.getString(0) == self.line and not self.made:
            self.made = True
            self.make()


def counting(state: MapStateFactory, *troubles: Trouble, batches: int = 3) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("lines", FixedBatchSpout("line string", 1, *BATCHES[:batches]))
    for trouble in troubles:
        stream = stream.peek(trouble)
    words = stream.each("line", Split(), "word").groupBy("word")
    words.persistentAggregate(state, Count(), "count")
    return topology


def counted(state: MapStateFactory) -> dict[str, int]:
    words = state.makeState()
    return dict(zip(COUNTS, words.multiGet([(word,) for word in COUNTS]), strict=True))


def test_words_are_counted_over_two_nodes(state: MapStateFactory, tmp_path: Path) -> None:
    with counting(state).start(checkpoint=str(tmp_path / "checkpoint")) as run:
        run.processAllAvailable()
    assert counted(state) == COUNTS


@pytest.mark.parametrize("node", [0, 1])
def test_a_batch_that_meets_a_paused_node_is_retried_and_counts_once(
    state: MapStateFactory, servers: list[MemcachedServer], tmp_path: Path, node: int
) -> None:
    def pause() -> None:
        servers[node].pause()
        # Longer than the 0.5 s that the state waits for an answer
        threading.Timer(0.8, servers[node].resume).start()

    trouble = Trouble("the man walked", pause)
    with counting(state, trouble).start(checkpoint=str(tmp_path / "checkpoint")) as run:
        run.processAllAvailable()
    assert trouble.made
    assert counted(state) == COUNTS


@pytest.mark.parametrize("node", [0, 1])
def test_a_node_that_restarts_during_a_batch_stops_the_run(
    state: MapStateFactory, servers: list[MemcachedServer], tmp_path: Path, node: int
) -> None:
    trouble = Trouble("the man walked", servers[node].restart)
    run = counting(state, trouble).start(checkpoint=str(tmp_path / "checkpoint"))
    with run, pytest.raises((CorruptStateError, LostStateError)):
        run.processAllAvailable()


@pytest.mark.parametrize("node", [0, 1])
def test_a_node_that_restarted_between_runs_is_no_fresh_start(
    state: MapStateFactory, servers: list[MemcachedServer], tmp_path: Path, node: int
) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    with counting(state, batches=2).start(checkpoint=checkpoint) as run:
        run.processAllAvailable()
    servers[node].restart()
    with (
        pytest.raises((CorruptStateError, LostStateError)),
        counting(state).start(checkpoint=checkpoint) as run,
    ):
        run.processAllAvailable()


def test_a_node_that_is_away_at_start_is_named(
    state: MapStateFactory, servers: list[MemcachedServer], tmp_path: Path
) -> None:
    servers[1].kill()
    topology = counting(state)
    with (
        pytest.raises(StateUnavailableError, match=f"{servers[1].port}: it refuses the connection"),
        topology.start(checkpoint=str(tmp_path / "checkpoint")) as run,
    ):
        run.processAllAvailable()
