"""Thrift over real connections, with a client made of Storm's definition."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.transport import TMemoryBuffer

from tests.drpc.asking import PATIENCE, asking, counts, held, until
from tests.server.storm_client import STORM, storm_client
from tests.server.wire import Wire, everything
from trident import MapGet, TridentTopology
from trident.drpc.errors import (
    DRPCQueueFullError,
    DRPCTimeoutError,
    MalformedRequestError,
)
from trident.server.access import Access
from trident.server.connection import Connections
from trident.server.functions import Functions
from trident.server.invocations import Invocations
from trident.server.limits import DRPCLimits
from trident.server.server import DRPCServer
from trident.server.thrift_connection import ThriftConnection, calls
from trident.wire.thrift_binary import ThriftError, framed, message_bytes, read_message

TYPES = STORM.DRPCExceptionType


def failing(args: str) -> list[str]:
    if args == "broken":
        raise ValueError("broken is no word")
    return [args]


@pytest.fixture(scope="module")
def server() -> Iterator[DRPCServer]:
    topology = asking(MapGet(), counts({"cat": 2, "ü🐄": 3}))
    topology.newDRPCStream("echo").each("args", failing, "out").project("out")
    limits = DRPCLimits(slow=PATIENCE, idle=PATIENCE, args=1000)
    ports: dict[str, Any] = {"port": None, "thrift_port": 0, "invocations_port": 0}
    with DRPCServer(topology, limits=limits, **ports) as server:
        yield server


def test_storms_client_gets_its_answers(server: DRPCServer) -> None:
    with storm_client(STORM.DistributedRPC, server.thrift_port) as client:
        assert client.execute("words", "cat ü🐄 dog") == '[["cat",2],["ü🐄",3],["dog",null]]'
        assert client.execute("echo", "") == '[[""]]'
        assert client.execute("echo", "a" * 1000) == f'[["{"a" * 1000}"]]'


@pytest.mark.parametrize(
    ("function", "args", "type", "message"),
    [
        ("wrods", "", TYPES.FAILED_REQUEST, "there are: words, echo. Did you mean 'words'?"),
        ("echo", "broken", TYPES.FAILED_REQUEST, "ValueError: broken is no word in the step each("),
        ("echo", "a" * 1001, TYPES.FAILED_REQUEST, "over 1000 bytes"),
        ("echo", "a" * 200_000, TYPES.FAILED_REQUEST, "over 1000 bytes"),
    ],
)
def test_storms_client_is_told_what_failed(
    server: DRPCServer, function: str, args: str, type: int, message: str
) -> None:
    with storm_client(STORM.DistributedRPC, server.thrift_port) as client:
        with pytest.raises(STORM.DRPCExecutionException) as caught:
            client.execute(function, args)
        assert caught.value.type == type
        assert message in caught.value.msg
        assert ".py" not in caught.value.msg


def test_time_over_and_the_end_of_the_server_have_storms_types() -> None:
    limits = DRPCLimits(timeout=0.02)
    with (
        held() as (drpc, _),
        DRPCServer(drpc, port=None, thrift_port=0, limits=limits) as server,
        storm_client(STORM.DistributedRPC, server.thrift_port) as client,
    ):
        with pytest.raises(STORM.DRPCExecutionException) as caught:
            client.execute("words", "held")
        assert caught.value.type == TYPES.SERVER_TIMEOUT
        server.functions.close()
        with pytest.raises(STORM.DRPCExecutionException) as caught:
            client.execute("words", "a")
        assert caught.value.type == TYPES.SERVER_SHUTDOWN


def test_with_tokens_only_what_is_anybodys_is_answered() -> None:
    topology = TridentTopology()
    for function in ("own", "free"):
        topology.newDRPCStream(function).map(str.upper, "text")
    access: Any = {"tokens": {"ann": "t"}, "allow": {"own": ["ann"], "free": ["*"]}}
    with (
        DRPCServer(topology, port=None, thrift_port=0, invocations_port=0, **access) as server,
        storm_client(STORM.DistributedRPC, server.thrift_port) as client,
        storm_client(STORM.DistributedRPCInvocations, server.invocations_port) as other,
    ):
        assert client.execute("free", "a") == '[["A"]]'
        with pytest.raises(STORM.AuthorizationException):
            client.execute("own", "a")
        with pytest.raises(STORM.AuthorizationException):
            other.fetchRequest("own")


def test_others_answer_functions_as_storms_topologies_do(server: DRPCServer) -> None:
    def called(*args: str) -> Any:
        with storm_client(STORM.DistributedRPC, server.thrift_port) as client:
            return client.execute(*args)

    with (
        storm_client(STORM.DistributedRPCInvocations, server.invocations_port) as other,
        ThreadPoolExecutor(1) as pool,
    ):

        def fetched() -> Any:
            found: list[Any] = []
            until(lambda: found.append(other.fetchRequest("theirs")) or found[-1].request_id)
            return found[-1]

        nothing = other.fetchRequest("theirs")
        assert (nothing.func_args, nothing.request_id) == ("", "")
        call = pool.submit(called, "theirs", "a b")
        request = fetched()
        assert request.func_args == "a b"
        other.result("another id", "wrong")
        other.result(request.request_id, "right")
        assert call.result(PATIENCE) == "right"

        call = pool.submit(called, "theirs", "")
        other.failRequest(fetched().request_id)
        with pytest.raises(STORM.DRPCExecutionException) as caught:
            call.result(PATIENCE)
        assert caught.value.type == TYPES.FAILED_REQUEST

        call = pool.submit(called, "theirs", "")
        error = STORM.DRPCExecutionException(msg="no such word", type=TYPES.FAILED_REQUEST)
        other.failRequestV2(fetched().request_id, error)
        with pytest.raises(STORM.DRPCExecutionException) as caught:
            call.result(PATIENCE)
        assert caught.value.msg == "no such word"


def test_a_request_that_nobody_answers_ends_in_time_and_is_forgotten() -> None:
    limits = DRPCLimits(timeout=0.02)
    topology = TridentTopology()
    topology.newDRPCStream("f").map(str.upper, "text")
    with (
        DRPCServer(topology, port=None, thrift_port=0, invocations_port=0, limits=limits) as server,
        storm_client(STORM.DistributedRPC, server.thrift_port) as client,
        storm_client(STORM.DistributedRPCInvocations, server.invocations_port) as other,
    ):
        assert other.fetchRequest("theirs").request_id == ""
        with pytest.raises(STORM.DRPCExecutionException) as caught:
            client.execute("theirs", "a")
        assert caught.value.type == TYPES.SERVER_TIMEOUT
        assert other.fetchRequest("theirs").request_id == ""


def test_what_others_fetch_has_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident.server.invocations.MOST_BYTES", sys.getsizeof("a" * 10))
    kept = Invocations()
    with pytest.raises(MalformedRequestError, match="1000 characters at most"):
        kept.fetch("f" * 1001)

    async def ask() -> None:
        assert kept.fetch("f") == ("", "")
        with pytest.raises(DRPCQueueFullError):
            await kept.execute_async("f", "🐄" * 5)  # four bytes each
        first = asyncio.create_task(kept.execute_async("f", "a" * 10))
        await asyncio.sleep(0)
        _, id = kept.fetch("f")
        with pytest.raises(DRPCQueueFullError):
            await kept.execute_async("f", "a")
        kept.result(id, "done")
        assert await first == "done"
        with pytest.raises(DRPCTimeoutError):
            await kept.execute_async("f", "a", 0.001)

    asyncio.run(ask())
    assert kept.functions == ("f",)


def connected_to(server: DRPCServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.thrift_port or 0), PATIENCE)


def test_a_frame_that_never_comes_and_a_frame_of_any_size_end_the_connection() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").map(str.upper, "text")
    limits = DRPCLimits(slow=0.2, thrift_idle=0.4)
    with DRPCServer(topology, port=None, thrift_port=0, limits=limits) as server:
        sizes = (b"\0\0\0\x20abc", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"GET / HTTP")
        for frame in (b"", *sizes):
            with closing(connected_to(server)) as client:
                client.sendall(frame)
                assert everything(client) == b""


def test_a_silent_connection_stays_however_long_it_is_silent() -> None:
    async def seconds_left(limits: DRPCLimits, data: bytes = b"") -> float:
        connection = connection_of(limits)
        connection.connection_made(Wire())
        if data:
            connection.data_received(data)
        return connection.until - connection.loop.time()

    limits = DRPCLimits(slow=1, idle=1)
    assert asyncio.run(seconds_left(limits)) == float("inf")
    assert asyncio.run(seconds_left(limits, b"\0\0\0\x05abc")) <= 1
    assert 1 < asyncio.run(seconds_left(DRPCLimits(slow=1, thrift_idle=5))) <= 5


def test_a_client_that_has_gone_without_a_word_is_found_out() -> None:
    class OverTCP(Wire):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return sockets[0] if name == "socket" else default

    async def keeps_alive() -> int:
        connection_of(DRPCLimits()).connection_made(OverTCP())
        return sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    with socket.socket() as made:
        sockets = [made]
        assert asyncio.run(keeps_alive()) == 1


def test_a_call_that_there_is_not_is_thrifts_own_exception(server: DRPCServer) -> None:
    with closing(connected_to(server)) as client:
        client.sendall(framed(message_bytes("getNimbusConf", 1, 7, {})))
        reply = read_message(client.recv(1000)[4:])
    assert (reply.kind, reply.seqid, reply.fields[2]) == (3, 7, 1)
    assert "there are: execute" in reply.fields[1]


def test_arguments_that_are_no_utf8_are_refused(server: DRPCServer) -> None:
    message = message_bytes("execute", 1, 7, {1: "echo", 2: "abc"})
    message = message.replace(b"abc", b"\xff\xfe\x80")
    with closing(connected_to(server)) as client:
        client.sendall(framed(message))
        reply = read_message(client.recv(1000)[4:])
    assert "no UTF-8" in reply.fields[1][1]
    assert reply.fields[1][2] == TYPES.FAILED_REQUEST


def test_a_list_of_elements_without_bytes_is_refused_at_once() -> None:
    field = struct.pack("!bhbi", 15, 9, 0, 2**31 - 1)
    with pytest.raises(ThriftError, match="too many values"):
        read_message(message_bytes("execute", 1, 0, {})[:-1] + field + b"\0")


_HEAD = message_bytes("execute", 1, 0, {})[:-1]


@pytest.mark.parametrize(
    "fields",
    [
        struct.pack("!bhbi", 15, 9, 12, 10**6) + b"\0" * 10**6,
        struct.pack("!bhbi", 15, 9, 11, 250_000) + b"\0" * 10**6,
        struct.pack("!bhbbi", 13, 9, 2, 11, 200_000) + b"\0" * 10**6,
        struct.pack("!bhb", 2, 9, 1) * 250_000,
    ],
)
def test_what_has_many_values_that_nobody_asked_for_costs_no_more_than_some(fields: bytes) -> None:
    with pytest.raises(ThriftError, match="too many values"):
        read_message(_HEAD + fields + b"\0")


@pytest.mark.parametrize(
    "fields",
    [
        b"\x0c\x00\x09" * 100_000,
        b"\x0f\x00\x09" + b"\x0f\0\0\0\x01" * 100_000,
        b"\x0f\x00\x09" + b"\x0c\0\0\0\x01" + b"\x0f\x00\x09\x0c\0\0\0\x01" * 100_000,
    ],
)
def test_what_nests_deep_is_refused(fields: bytes) -> None:
    with pytest.raises(ThriftError, match="nests too deep|depth"):
        read_message(_HEAD + fields)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 10])
@pytest.mark.parametrize("kind", [11, 13, 14, 15])
def test_a_size_that_cannot_be_is_refused(kind: int, size: int) -> None:
    inner = {11: b"", 13: b"\x0b\x0b", 14: b"\x0b", 15: b"\x0b"}[kind]
    field = struct.pack("!bh", kind, 9) + inner + struct.pack("!i", size)
    with pytest.raises(ThriftError):
        read_message(_HEAD + field + b"\0")


def test_bytes_that_nobody_asked_for_need_be_no_text() -> None:
    message = read_message(_HEAD + b"\x0b\x00\x09\0\0\0\x02\xff\xfe\0")
    assert message.fields == {9: None}


_SAFE = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(_SAFE, _SAFE, st.integers(-(2**31), 2**31 - 1), st.booleans())
def test_messages_are_those_of_a_library_for_thrift(
    function: str, args: str, seqid: int, strict: bool
) -> None:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer, strict_write=strict)
    protocol.write_message_begin("execute", 1, seqid)
    STORM.DistributedRPC.execute_args(functionName=function, funcArgs=args).write(protocol)
    theirs = buffer.getvalue()
    assert read_message(theirs) == ("execute", 1, seqid, {1: function, 2: args})
    if strict:
        assert message_bytes("execute", 1, seqid, {1: function, 2: args}) == theirs

    failure = message_bytes("execute", 2, seqid, {1: {1: args, 2: 3}})
    reading = TBinaryProtocol(TMemoryBuffer(failure))
    assert reading.read_message_begin() == ("execute", 2, seqid)
    result = STORM.DistributedRPC.execute_result()
    result.read(reading)
    assert (result.e.msg, result.e.type, result.success) == (args, TYPES.FAILED_REQUEST, None)


def fields_of_all_kinds() -> st.SearchStrategy[bytes]:
    """Fields that nobody asked for, as bytes."""
    small = st.sampled_from(
        [
            b"\x02\x00\x09\x01",
            b"\x03\x00\x09\x01",
            b"\x04\x00\x09" + b"\0" * 8,
            b"\x06\x00\x09\0\0",
            b"\x0a\x00\x09" + b"\0" * 8,
            b"\x0d\x00\x09\x0b\x08\0\0\0\x01\0\0\0\x01a\0\0\0\x05",
            b"\x0e\x00\x09\x06\0\0\0\x02\0\0\0\0",
            b"\x0f\x00\x09\x0c\0\0\0\x01\x08\x00\x01\0\0\0\x05\0",
            b"\x0c\x00\x09\x0b\x00\x01\0\0\0\x01a\0",
        ]
    )
    return st.lists(small, max_size=5).map(b"".join)


@given(fields_of_all_kinds())
def test_fields_that_nobody_asked_for_are_passed_over(fields: bytes) -> None:
    message = message_bytes("execute", 1, 7, {1: "f", 2: "a"})[:-1] + fields + b"\0"
    read = read_message(message)
    assert (read.fields[1], read.fields[2]) == ("f", "a")


def connection_of(limits: DRPCLimits) -> ThriftConnection:
    """A connection to a function that answers with its arguments."""

    class Echo:
        functions = ("echo",)

        async def execute_async(
            self, function: str, args: str, timeout: Any = None, *, request_id: Any = None
        ) -> str:
            return args

    return ThriftConnection(Connections(limits), calls(Functions([Echo()], Access(), limits)))


async def fed(parts: list[bytes]) -> tuple[bytes, bool]:
    """What a connection answers to some bytes, and whether it has ended."""
    connection = connection_of(DRPCLimits(args=300))
    wire = Wire()
    connection.connection_made(wire)
    for part in parts:
        connection.data_received(part)
        while connection._task is not None:
            await asyncio.sleep(0)
    ended = wire.closed
    connection.connection_lost(None)
    assert (len(connection.among), connection.among.received) == (0, 0)
    return wire.written, ended


_CALL = message_bytes("execute", 1, 7, {1: "echo", 2: "cat"})


@settings(max_examples=3 * settings.default.max_examples)
@given(st.data())
def test_whatever_bytes_come_in_a_frame_are_answered_or_ended(data: st.DataObject) -> None:
    frame = bytearray(_CALL)
    for position, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(frame) - 1), st.integers(0, 255)), max_size=6)
    ):
        frame[position] = byte
    frame = frame[: data.draw(st.integers(0, len(frame)))] + data.draw(st.binary(max_size=30))
    written, ended = asyncio.run(fed([framed(bytes(frame))]))
    assert written or ended
    while written:
        size = int.from_bytes(written[:4], "big")
        assert read_message(written[4 : 4 + size]).kind in (2, 3)
        written = written[4 + size :]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_whatever_bytes_come_without_frames_are_answered_or_ended(parts: list[bytes]) -> None:
    asyncio.run(fed(parts))


@given(st.lists(st.integers(1, 20), max_size=20))
def test_a_call_is_the_same_however_its_bytes_come(cuts: list[int]) -> None:
    rest = framed(_CALL) * 2
    parts = []
    for cut in cuts:
        parts.append(rest[:cut])
        rest = rest[cut:]
    written, _ = asyncio.run(fed([part for part in [*parts, rest] if part]))
    assert written == framed(message_bytes("execute", 2, 7, {0: "cat"})) * 2
