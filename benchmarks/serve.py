"""DRPC from outside the process: what HTTP and Thrift add, and how many clients it serves."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

from starlette.types import Receive, Scope, Send

from benchmarks.report import Figure, limit, median, rate, throughput
from benchmarks.topologies import QUESTION, word_count
from trident import FixedBatchSpout, MemoryMapState
from trident.api.run import Run
from trident.backends.state_spec import StateLike
from trident.drpc.query import Query
from trident.server import DRPCServer
from trident.server.connection import ServerConnection
from trident.server.http_protocol import http_protocol
from trident.server.responses import response
from trident.server.thrift_connection import Fields, ThriftConnection
from trident.testing.servers.redis import RedisServer
from trident.wire.thrift_binary import CALL, framed, message_bytes

_LINES = [("the cat sat on",), ("the dog ran",), ("a man walked",)]
_CALLS = 3_000
_CLIENTS = 64
_HEAD = b"POST /drpc/%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"


def _http(function: str) -> bytes:
    return _HEAD % (function.encode(), len(QUESTION), QUESTION.encode())


def _thrift(function: str) -> bytes:
    return framed(message_bytes("execute", CALL, 0, {1: function, 2: QUESTION}))


_HTTP, _THRIFT = _http("words"), _thrift("words")


def figures(folder: Path) -> Iterator[Figure]:
    """Measure single calls beside an echo of the same server, 64 clients, and Redis."""
    with _counted(MemoryMapState.Factory()) as run, _Echoing(run) as server:
        for name, port, echo_port, request, target in (
            ("HTTP", server.port, server.echo_port, _http, 150e-6),
            ("Thrift", server.thrift_port, server.thrift_echo_port, _thrift, 100e-6),
        ):
            loop, worker, echo = _interleaved(
                (port, request("words")), (port, request("upper")), (echo_port, request("words"))
            )
            yield limit(f"{name}: a call beside an echo, added to p50", loop - echo, target=target)
            # A step of the user's may wait for something.
            added = f"{name}: a call that a worker answers, added to p50"
            yield limit(added, worker - echo, target=target)

    spout = FixedBatchSpout("line string", 2, *_LINES, cycle=True)
    topology = word_count(spout, "line", MemoryMapState.Factory())
    with topology.start(trigger=0.01) as run, DRPCServer(run, port=0, thrift_port=0) as server:
        for name, port, request in (
            ("HTTP", server.port, _HTTP),
            ("Thrift", server.thrift_port, _THRIFT),
        ):
            seconds, cpu, p99 = _loaded(port, request)
            calls = f"{name}: {_CLIENTS} clients while a batch every 10 ms writes"
            yield rate(f"{calls}, queries", _LOAD, [seconds], target=10_000)
            per_cpu = f"{name}: queries for a second of the server's CPU"
            yield rate(per_cpu, _LOAD, [cpu], target=10_000)
            yield limit(f"{calls}, p99", p99, target=20e-3)

    with RedisServer(folder / "redis") as redis, _counted(redis.url) as run:
        plan = word_count(FixedBatchSpout("line string", 2), "line", redis.url).plan()
        query = Query(plan, plan.drpc["words"], None)
        query.prepare()
        requests = [QUESTION] * _CLIENTS
        assert set(query.answer_together(requests)) == {run.drpc.execute("words", QUESTION)}
        works: list[Callable[[], object]] = [
            lambda: query.answer_together(requests),
            lambda: [query.answer(args) for args in requests],
        ]
        pairs = [[_timed(work) for work in works] for _ in range(20)]
        ours, theirs = zip(*pairs, strict=True)
        name = "Redis: 64 requests answered together, beside one by one"
        yield throughput(name, _CLIENTS, ours, theirs, target=5.0)
        query.close()


@contextmanager
def _counted(state: StateLike) -> Iterator[Run]:
    """A run of the word count that has counted."""
    spout = FixedBatchSpout("line string", 2, *_LINES)
    topology = word_count(spout, "line", state)
    topology.newDRPCStream("upper").map(lambda args: [[args.upper()]], "texts")
    with topology.start() as run:
        run.processAllAvailable()
        yield run


class _Echoing(DRPCServer):
    """A server that has ports besides on which it answers without asking anything."""

    def __init__(self, run: Run) -> None:
        super().__init__(run, port=0, thrift_port=0)
        self.echo_port: int | None = 0
        self.thrift_echo_port: int | None = 0

    def _protocols(self) -> Iterator[tuple[str, Callable[[], ServerConnection]]]:
        yield from super()._protocols()
        methods = {"execute": _echoed}
        yield "echo_port", http_protocol(self.connections, _echo)
        yield "thrift_echo_port", lambda: ThriftConnection(self.connections, methods)


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await response(200, b"[[2]]")(scope, receive, send)


async def _echoed(fields: Fields) -> Fields:
    return {0: "[[2]]"}


def _interleaved(*asked: tuple[int | None, bytes]) -> list[float]:
    """The median time of each call, to a port with a request, in seconds; a call of each in
    turn."""
    clients = [_connected(port) for port, _ in asked]
    times: list[list[float]] = [[] for _ in clients]
    for _ in range(_CALLS):
        for client, (_, request), taken in zip(clients, asked, times, strict=True):
            start = perf_counter()
            client.sendall(request)
            answer = client.recv(4096)
            assert b"[[" in answer, answer
            taken.append(perf_counter() - start)
    for client in clients:
        client.close()
    return [median(each) for each in times]


_LOAD = 20_000


def _loaded(port: int | None, request: bytes) -> tuple[float, float, float]:
    """How long so many calls of 64 clients take, of which CPU of this process, and their p99.

    The clients are another process, which costs a processor of its own.
    """
    command = [sys.executable, "-m", "benchmarks.serve", str(port), request.hex(), str(_LOAD)]
    before = process_time()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu = process_time() - before
    seconds, p99 = map(float, done.stdout.split())
    return seconds, cpu, p99


def _clients(port: int, request: bytes, calls: int) -> None:
    """Be 64 clients, each of which calls again when it has its answer; print the time and p99."""
    clients = {client.fileno(): client for client in (_connected(port) for _ in range(_CLIENTS))}
    polling = select.epoll()
    sent: dict[int, float] = {}
    times = []
    for number, client in clients.items():
        polling.register(number, select.EPOLLIN)
        client.sendall(request)
        sent[number] = perf_counter()
    begun = perf_counter()
    while len(times) < calls:
        for number, _ in polling.poll():
            assert b"[[" in clients[number].recv(4096), "a call has failed"
            now = perf_counter()
            times.append(now - sent[number])
            sent[number] = now
            clients[number].send(request)
    seconds = perf_counter() - begun
    print(seconds / len(times) * calls, sorted(times)[int(len(times) * 0.99)])


def _connected(port: int | None) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port or 0))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def _timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    _clients(int(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3]))
