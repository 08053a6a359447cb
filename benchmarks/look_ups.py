"""Three look-ups in a row in Redis beside one, in a query: on this machine, and 1 ms away."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks.report import Figure, latency, median
from tests.faults.proxy import Proxy
from trident import MapGet, Split, TridentTopology
from trident.backends import state_from_url
from trident.drpc.service import LocalDRPC
from trident.testing.servers.redis import RedisServer

_NAMES = ("x", "y", "z")
_QUERIES = 500
_AWAY = 0.001


class Away(Proxy):
    """A network: each request takes a millisecond to the server."""

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):
            while data := client.recv(2**16):
                sleep(_AWAY)
                server.sendall(data)


def figures(folder: Path) -> Iterator[Figure]:
    """Measure the median of 500 queries of three words."""
    with RedisServer(folder / "redis") as redis:
        for name in _NAMES:
            state: Any = state_from_url(f"{redis.url}?prefix={name}").makeState()
            state.beginCommit(1)
            state.multiPut([(f"w{number}",) for number in range(100)], range(100))
            state.commit(1)
            state.close()
        host, port = redis.url.removeprefix("redis://").partition("/")[0].split(":")
        with Away(host, int(port)) as away:
            places = {"here": redis.url, "1 ms away": f"redis://{away.host}:{away.port}/0"}
            for where, url in places.items():
                rounds = [[_p50(url, names) for names in (_NAMES, "x")] for _ in range(3)]
                three, one = (min(each) for each in zip(*rounds, strict=True))
                yield latency(f"three look-ups in Redis {where}, beside one", three, one, target=2)


def _p50(url: str, names: tuple[str, ...] | str) -> float:
    topology = TridentTopology()
    query = topology.newDRPCStream("f").each("args", Split(), "word")
    for name in names:
        known = topology.newStaticState(f"{url}?prefix={name}", name=name)
        query = query.stateQuery(known, "word", MapGet(), name)
    query.project(",".join(names))
    times = []
    with LocalDRPC(topology.plan()) as drpc:
        for _ in range(_QUERIES):
            start = perf_counter()
            drpc.execute("f", "w1 w2 w3")
            times.append(perf_counter() - start)
    return median(times)
