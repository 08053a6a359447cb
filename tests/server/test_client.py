"""The client, over HTTP and Thrift, of servers that answer, fail, hang and are away."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.drpc.asking import PATIENCE, asking, counts, held
from tests.servers.certificates import make_certificates
from trident import MapGet, TridentTopology
from trident.client.drpc_client import DRPCClient
from trident.drpc.errors import (
    AnswerLostError,
    ArgumentsTooLargeError,
    DRPCAccessError,
    DRPCClosedError,
    DRPCError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    DRPCUsageError,
    MalformedRequestError,
    NoServerError,
    UnknownFunctionError,
)
from trident.drpc.service import LocalDRPC
from trident.server.limits import DRPCLimits
from trident.server.server import DRPCServer
from trident.states.errors import StateUnavailableError
from trident.wire.errors import read_error
from trident.wire.thrift_binary import EXCEPTION, framed, message_bytes

FAILURES: dict[str, DRPCError] = {
    "timeout": DRPCTimeoutError("f", 1.5, 7),
    "full": DRPCQueueFullError("f", 7),
    "closed": DRPCClosedError("f"),
    "failed": DRPCExecutionError("f", "", "all of it", "ValueError: no in the step each(f)"),
    "away": DRPCUnavailableError("f", "", "redis is away"),
    "internal": DRPCInternalError("f", "", "a bug"),
}


class Failing:
    """Fails a call as its arguments say, and answers others."""

    functions = ("f",)

    async def execute_async(
        self,
        function: str,
        args: str,
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        if args == "hang":
            await asyncio.sleep(PATIENCE)
        if args in FAILURES:
            raise FAILURES[args]
        return args


PORTS: dict[str, Any] = {"port": 0, "thrift_port": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[DRPCServer]:
    with DRPCServer(Failing(), limits=DRPCLimits(args=1000), **PORTS) as server:
        yield server


def address(server: DRPCServer, way: str) -> str:
    return server.url if way == "http" else f"thrift://127.0.0.1:{server.thrift_port}"


def unused_port() -> int:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


BOTH = pytest.mark.parametrize("way", ["http", "thrift"])


@BOTH
def test_a_call_is_answered_by_many_threads_and_coroutines(server: DRPCServer, way: str) -> None:
    requests = [f"the {number} 🐄/%?" for number in range(40)]
    with DRPCClient(address(server, way)) as client, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda args: client.execute("f", args), requests)) == requests
        assert asyncio.run(client.execute_async("f", "a")) == "a"


def test_calls_of_a_loop_need_none_of_the_applications_threads(server: DRPCServer) -> None:
    held = Event()

    async def called() -> str:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as only:
            loop.set_default_executor(only)
            busy = loop.run_in_executor(None, held.wait)
            try:
                return await client.execute_async("f", "a")
            finally:
                held.set()
                await busy

    with DRPCClient(server.url, timeout=PATIENCE) as client:
        assert asyncio.run(called()) == "a"


def test_a_call_that_finds_no_thread_ends_in_time(
    server: DRPCServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident.client.drpc_client._THREADS", 1)

    async def called() -> None:
        first = asyncio.create_task(client.execute_async("f", "hang", 0.3))
        await asyncio.sleep(0)
        with pytest.raises(DRPCTimeoutError):
            await client.execute_async("f", "a", 0.1)
        with pytest.raises(DRPCTimeoutError):
            await first
        with pytest.raises(DRPCUsageError, match="a number of seconds"):
            await client.execute_async("f", "a", 0)

    with DRPCClient(server.url) as client:
        asyncio.run(called())


def raised_by(client: DRPCClient, function: str, args: str, **options: Any) -> DRPCError:
    with pytest.raises(DRPCError) as caught:
        client.execute(function, args, **options)
    return caught.value


@BOTH
@pytest.mark.parametrize("args", list(FAILURES))
def test_what_failed_there_is_raised_here(server: DRPCServer, way: str, args: str) -> None:
    with DRPCClient(address(server, way)) as client:
        error = raised_by(client, "f", args)
    assert type(error) is type(FAILURES[args])
    if args == "timeout":
        assert str(error) == str(FAILURES[args])
    if args == "failed":
        assert str(error) == "f('failed') failed: ValueError: no in the step each(f)"
    if args == "internal":
        assert "bug" not in str(error)


def test_an_unknown_function_and_too_large_arguments_are_told(server: DRPCServer) -> None:
    with DRPCClient(server.url) as client:
        unknown = raised_by(client, "ff", "")
        assert isinstance(unknown, UnknownFunctionError)
        assert unknown.known == ("f",)
        large = raised_by(client, "f", "a" * 500_000)
        assert isinstance(large, ArgumentsTooLargeError)
        assert large.limit == 1000
        assert isinstance(raised_by(client, "f", "\ud800"), MalformedRequestError)


@BOTH
def test_the_next_server_is_asked_where_one_is_away(server: DRPCServer, way: str) -> None:
    away = f"{way}://127.0.0.1:{unused_port()}"
    with DRPCClient(away, address(server, way)) as client:
        assert client.execute("f", "a") == "a"
        assert client.execute("f", "b") == "b"


@BOTH
def test_the_next_server_is_asked_where_one_is_shutting_down(server: DRPCServer, way: str) -> None:
    with DRPCServer(Failing(), **PORTS) as closing_down:
        closing_down.functions.close()
        with DRPCClient(address(closing_down, way), address(server, way)) as client:
            assert client.execute("f", "a") == "a"


@BOTH
@pytest.mark.parametrize("args", ["full", "away"])
def test_the_next_server_is_asked_where_one_cannot_answer_now(
    server: DRPCServer, way: str, args: str
) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").map(str.upper, "text")
    with (
        DRPCServer(topology, **PORTS) as other,
        DRPCClient(address(server, way), address(other, way)) as client,
    ):
        assert client.execute("f", args) == f'[["{args.upper()}"]]'


@BOTH
def test_a_server_that_was_started_again_is_asked_again(way: str) -> None:
    ports = {"port": unused_port(), "thrift_port": unused_port()}
    with DRPCClient(
        f"http://127.0.0.1:{ports['port']}"
        if way == "http"
        else f"thrift://127.0.0.1:{ports['thrift_port']}"
    ) as client:
        for args in ("a", "b"):
            with DRPCServer(Failing(), **ports):  # type: ignore[arg-type]
                assert client.execute("f", args) == args
        assert isinstance(raised_by(client, "f", "c"), NoServerError)


def test_where_no_server_answers_each_is_told_with_what_was_found() -> None:
    ports = [unused_port(), unused_port()]
    with DRPCClient(*[f"127.0.0.1:{port}" for port in ports]) as client:
        error = raised_by(client, "f", "a")
    for port in ports:
        assert f"127.0.0.1:{port}: " in str(error)
    assert isinstance(error, NoServerError)
    assert "refused" in str(error)


@BOTH
def test_a_call_ends_in_time_and_the_next_begins_with_another_server(
    server: DRPCServer, way: str
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        hanging = f"{way}://127.0.0.1:{deaf.getsockname()[1]}"
        with DRPCClient(hanging, address(server, way)) as client:
            error = raised_by(client, "f", "a", timeout=0.05)
            assert isinstance(error, DRPCTimeoutError)
            assert 0.04 < error.elapsed < 5
            assert client.execute("f", "a") == "a"


@contextmanager
def dripping(begins: bytes) -> Iterator[int]:
    """The port of a server that begins an answer, and sends a byte of it now and then."""
    ended = Event()

    def drip(listening: socket.socket) -> None:
        with listening.accept()[0] as client, suppress(OSError):
            client.sendall(begins)
            while not ended.wait(0.01):
                client.sendall(b" ")

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = Thread(target=drip, args=(listening,), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        ended.set()
        thread.join(PATIENCE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "begins"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\n"),
        ("thrift", b"\x00\x01\x00\x00"),
    ],
)
def test_a_server_that_sends_a_byte_now_and_then_has_no_more_time(way: str, begins: bytes) -> None:
    with dripping(begins) as port, DRPCClient(f"{way}://127.0.0.1:{port}") as client:
        error = raised_by(client, "f", "a", timeout=0.2)
        assert isinstance(error, DRPCTimeoutError)
        assert 0.2 <= error.elapsed < 2


def test_an_answer_that_comes_after_its_head_is_taken_though_the_connection_ends() -> None:
    def answer(listening: socket.socket) -> None:
        for _ in range(2):  # of the first the client wants to know whether it knows ids
            with listening.accept()[0] as client:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n")
                Event().wait(0.05)  # so that the head is read by itself
                client.sendall(b"[[]]")

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = Thread(target=answer, args=(listening,), daemon=True)
        thread.start()
        with DRPCClient(f"127.0.0.1:{listening.getsockname()[1]}") as client:
            assert client.execute("f") == "[[]]"
        thread.join(PATIENCE)


@contextmanager
def storm(answers: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server that knows no ids, gives these answers, and then only ends
    connections; and what it was asked."""
    asked: list[bytes] = []
    left = [*answers]

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with listening.accept()[0] as client:
                    client.settimeout(PATIENCE)
                    while data := client.recv(4096):
                        asked.append(data)
                        if b"lost" in data:
                            break
                        if left:
                            client.sendall(left.pop(0))

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield listening.getsockname()[1], asked
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
NO_METHOD = framed(message_bytes("knowsIds", EXCEPTION, 0, {1: "Invalid method name", 2: 1}))


@pytest.mark.parametrize(
    ("way", "answer"), [("http", NOT_FOUND), ("thrift", NO_METHOD)], ids=["http", "thrift"]
)
def test_a_call_is_not_repeated_by_itself_where_it_would_run_twice(
    server: DRPCServer, way: str, answer: bytes
) -> None:
    with (
        storm([answer]) as (port, asked),
        DRPCClient(f"{way}://127.0.0.1:{port}", address(server, way)) as client,
    ):
        error = raised_by(client, "f", "lost")
    assert isinstance(error, AnswerLostError)
    assert f"127.0.0.1:{port}: " in str(error)
    assert sum(b"lost" in each for each in asked) == 1


def test_no_time_is_too_long(server: DRPCServer) -> None:
    with DRPCClient(server.url, timeout=1e300) as client:
        assert client.execute("f", "a") == "a"


def test_a_server_tells_how_long_its_queue_is_where_time_is_over() -> None:
    with held() as (drpc, _), DRPCServer(drpc, port=0) as server, DRPCClient(server.url) as client:
        error = raised_by(client, "words", "held", timeout=0.5)
    assert isinstance(error, DRPCTimeoutError)
    assert 0 < error.elapsed < 0.5


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_asks_over_a_connection_of_its_own() -> None:
    with DRPCServer(Failing(), **PORTS) as server, DRPCClient(server.url) as client:
        assert client.execute("f", "parent") == "parent"
        answers, answer = os.pipe()
        asked, go_on = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(go_on)
                os.write(answer, client.execute("f", "child").encode())
                os.read(asked, 1)  # ends with the parent's end of it
            finally:
                os._exit(0)
        try:
            os.close(answer)
            assert os.read(answers, 100) == b"child"
            assert len(server.connections) == 2
        finally:
            os.close(go_on)
            os.waitpid(child, 0)
            os.close(answers)
            os.close(asked)


def test_a_token_is_sent_and_a_wrong_one_refused() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").map(str.upper, "text")
    topology.newDRPCStream("g").map(str.upper, "text")
    access: Any = {"tokens": {"ann": "s3cret"}, "allow": {"f": ["ann"]}}
    with DRPCServer(topology, port=0, **access) as server:
        with DRPCClient(server.url, token="s3cret") as client:
            assert client.execute("f", "a") == '[["A"]]'
            assert isinstance(raised_by(client, "g", "a"), DRPCAccessError)
        with DRPCClient(server.url, token="wrong") as client:
            assert isinstance(raised_by(client, "f", "a"), DRPCAccessError)


def test_tls_is_verified(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    files: Any = {"certfile": made.certificate, "keyfile": made.key}
    with DRPCServer(Failing(), **PORTS, **files) as server:
        secure = f"thrifts://127.0.0.1:{server.thrift_port}"
        for url in (server.url, secure):
            with DRPCClient(url, ca=made.authority) as client:
                assert client.execute("f", "a") == "a"
            with DRPCClient(url) as client:
                assert "certificate verify failed" in str(raised_by(client, "f", "a"))


@pytest.mark.parametrize(
    "address", ["", "ftp://h:1", "http://:1", "http://h:99999", "h:1/drpc", "thrift://"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(DRPCUsageError, match="no address of a server"):
        DRPCClient(address)


def test_wrong_use_is_refused() -> None:
    with pytest.raises(DRPCUsageError, match="give a server"):
        DRPCClient()
    with pytest.raises(DRPCUsageError, match="number of seconds, found '0'"):
        DRPCClient("h:1", timeout=0)
    with pytest.raises(DRPCUsageError, match="Thrift carries no token"):
        DRPCClient("thrift://h:1", token="a")
    with DRPCClient("h:1") as client, pytest.raises(DRPCUsageError, match="found 'int'"):
        client.execute("f", 5)  # type: ignore[arg-type]


def test_a_state_that_is_away_is_asked_of_another_server(server: DRPCServer) -> None:
    class Away(MapGet):
        def batchRetrieve(self, state: Any, tuples: Any) -> Any:
            raise StateUnavailableError("redis://h:1", "refused")

    there = LocalDRPC(asking(MapGet(), counts({"a": 1})).plan())
    away = LocalDRPC(asking(Away(), counts({})).plan())
    with (
        there,
        away,
        DRPCServer(away, port=0) as first,
        DRPCServer(there, port=0) as second,
        DRPCClient(first.url, second.url) as client,
    ):
        assert client.execute("words", "a") == '[["a",1]]'


@pytest.mark.parametrize("told", ['"many"', "[]", "null", "NaN", "1e999", "9" * 400])
def test_what_a_server_tells_instead_of_a_number_is_no_number(told: str) -> None:
    for status, name, error in (
        (504, "SERVER_TIMEOUT", DRPCTimeoutError),
        (503, "QUEUE_FULL", DRPCQueueFullError),
        (413, "REQUEST_TOO_LARGE", ArgumentsTooLargeError),
        (404, "UNKNOWN_FUNCTION", UnknownFunctionError),
    ):
        parts = [f'"{field}":{told}' for field in ("queueLength", "elapsed", "limit", "functions")]
        body = f'{{"error":"{name}",{",".join(parts)}}}'.encode()
        assert type(read_error("f", "", status, body)) is error
