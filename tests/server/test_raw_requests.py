"""Raw requests, and what must come of each: RFC 9112, read by another library."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import h11
import pytest

from tests.drpc.asking import PATIENCE
from tests.server.wire import everything
from trident import TridentTopology
from trident.server.limits import DRPCLimits
from trident.server.server import DRPCServer

HOST = b"Host: localhost\r\n"
A = b"GET /drpc/echo/a HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /drpc/echo HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
LAST = b"GET /drpc/echo/last HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[DRPCServer]:
    topology = TridentTopology()
    topology.newDRPCStream("echo").each("args", lambda args: [args], "out").project("out")
    limits = DRPCLimits(slow=PATIENCE, idle=PATIENCE, args=1000, head=2000)
    with DRPCServer(topology, port=0, limits=limits) as server:
        yield server


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]


def asked(server: DRPCServer, raw: bytes) -> tuple[list[int], list[Answer]]:
    """The interim responses, and the answers, to some bytes of a client that sends no more."""
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as client:
        client.sendall(raw)
        client.shutdown(socket.SHUT_WR)
        received = everything(client)
    interim: list[int] = []
    answers: list[Answer] = []
    methods = [line.split(b" ")[0] for line in raw.split(b"\r\n") if b" HTTP/1." in line]
    while received:
        reader = h11.Connection(h11.CLIENT)
        method = methods[len(answers)] if len(answers) < len(methods) else b"GET"
        # What a client sends decides whether an answer has a body.
        reader.send(h11.Request(method=method or b"GET", target="/", headers=[("Host", "a")]))
        reader.send(h11.EndOfMessage())
        reader.receive_data(received)
        reader.receive_data(b"")
        body = b""
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            match event:
                case h11.InformationalResponse():
                    interim.append(event.status_code)
                case h11.Response():
                    head = event
                case h11.Data():
                    body += bytes(event.data)
        named = {name.decode(): value.decode() for name, value in head.headers}
        answers.append(Answer(head.status_code, body, named))
        received = reader.trailing_data[0]
    return interim, answers


def echoed(*texts: str) -> list[tuple[int, bytes]]:
    return [(200, f'[["{text}"]]'.encode()) for text in texts]


ANSWERED = [
    ("a request", A, ["a"]),
    ("no path but a query", b"GET /drpc/echo/a?b=c HTTP/1.1\r\n" + HOST + b"\r\n", ["a"]),
    ("an escape", b"GET /drpc/echo/%61 HTTP/1.1\r\n" + HOST + b"\r\n", ["a"]),
    ("an escaped slash", b"GET /drpc/echo/a%2Fb HTTP/1.1\r\n" + HOST + b"\r\n", ["a/b"]),
    ("a line before it", b"\r\n" + A, ["a"]),
    ("lines before it", b"\r\n\r\n" + A, ["a"]),
    ("several at once", A * 3, ["a"] * 3),
    ("one that ends the connection", LAST + A, ["last"]),
    ("garbage behind the last", LAST + b"garbage", ["last"]),
    ("a host with a port", A.replace(b"localhost", b"localhost:3774"), ["a"]),
    ("an address", A.replace(b"localhost", b"[::1]:80"), ["a"]),
    ("a host without a name", A.replace(b" localhost", b""), ["a"]),
    ("a host in capitals", A.replace(b"Host", b"HOST"), ["a"]),
    ("no space before a value", A.replace(b": l", b":l"), ["a"]),
    ("spaces around a value", A.replace(b": localhost", b": \t localhost \t "), ["a"]),
    ("absolute", A.replace(b"/drpc", b"http://localhost/drpc"), ["a"]),
    ("absolute in capitals", A.replace(b"/drpc", b"HTTP://localhost/drpc"), ["a"]),
    ("absolute counts", A.replace(b"/d", b"http://[::1]/d").replace(b"localhost", b"a"), ["a"]),
    ("1.0 without a host", b"GET /drpc/echo/a HTTP/1.0\r\n\r\n", ["a"]),
    ("1.0 that keeps", b"GET /drpc/echo/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", ["a"]),
    ("1.0 ends", b"GET /drpc/echo/a HTTP/1.0\r\n\r\n" + A, ["a"]),
    ("a body", POST + b"Content-Length: 5\r\n\r\nhello", ["hello"]),
    ("no body", POST + b"\r\n", [""]),
    ("an empty body", POST + b"Content-Length: 0\r\n\r\n", [""]),
    ("a body and another", POST + b"Content-Length: 1\r\n\r\nb" + A, ["b", "a"]),
    ("a length with zeros", POST + b"Content-Length: 001\r\n\r\nb", ["b"]),
    ("a body of a GET", A[:-2] + b"Content-Length: 1\r\n\r\nb" + A, ["a", "a"]),
    ("chunks", CHUNKED + b"\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", ["abc"]),
    ("no chunk", CHUNKED + b"\r\n0\r\n\r\n", [""]),
    ("a chunk in capitals", CHUNKED + b"\r\nA\r\naaaaaaaaaa\r\n0\r\n\r\n", ["a" * 10]),
    ("chunk extensions", CHUNKED + b"\r\n1;x=y\r\na\r\n0;z\r\n\r\n", ["a"]),
    ("a trailer", CHUNKED + b"\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", ["a"]),
    ("a trailer's token", CHUNKED + b"\r\n0\r\nX-DRPC-Timeout: none\r\n\r\n" + A, ["", "a"]),
    ("chunks and another", CHUNKED + b"\r\n1\r\nb\r\n0\r\n\r\n" + A, ["b", "a"]),
    ("chunked in capitals", CHUNKED.replace(b"chu", b"CHU") + b"\r\n0\r\n\r\n", [""]),
    ("HTTP/2 offered", POST + H2C + b"Content-Length: 5\r\n\r\nhello", ["hello"]),
    ("HTTP/2 offered, in chunks", CHUNKED + H2C + b"\r\n1\r\na\r\n0\r\n\r\n", ["a"]),
    ("HTTP/2 offered without a body", A[:-2] + H2C + b"\r\n", ["a"]),
    ("HTTP/2 offered thrice", (POST + H2C + b"Content-Length: 1\r\n\r\nb") * 3, ["b"] * 3),
    ("a websocket", A[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", ["a"]),
    ("an upgrade behind another", A + POST + H2C + b"Content-Length: 1\r\n\r\nb", ["a", "b"]),
]


@pytest.mark.parametrize(
    ("raw", "texts"), [each[1:] for each in ANSWERED], ids=[each[0] for each in ANSWERED]
)
def test_a_request_is_answered(server: DRPCServer, raw: bytes, texts: list[str]) -> None:
    interim, answers = asked(server, raw)
    assert [each[:2] for each in answers] == echoed(*texts)
    assert not interim
    for each in answers:
        assert each.headers["date"].endswith(" GMT")
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["cross-origin-resource-policy"] == "same-origin"


REFUSED = [
    ("no HTTP", b"hello\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ("no method", b" / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("no target", b"GET HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("a space in the target", A.replace(b"/a ", b"/a b "), 400),
    ("no protocol", A.replace(b"HTTP/1.1", b"HTPP/1.1"), 400),
    ("HTTP/0.9", b"GET /drpc/echo/a\r\n\r\n", 505),
    ("HTTP/1.2", A.replace(b"/1.1", b"/1.2"), 400),
    ("HTTP/2", A.replace(b"/1.1", b"/2.0"), 505),
    ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 405, 505)),
    ("no host", A.replace(HOST, b""), 400),
    ("two hosts", A.replace(HOST, HOST * 2), 400),
    ("a host that is a list", A.replace(b"localhost", b"localhost, b"), 400),
    ("a host that is a path", A.replace(b"localhost", b"localhost/a"), 400),
    ("a space before the colon", A.replace(b"Host:", b"Host :"), 400),
    ("a field without a colon", A[:-2] + b"X\r\n\r\n", 400),
    ("a folded field", A[:-2] + b"X: a\r\n b\r\n\r\n", 400),
    ("a NUL in a field", A[:-2] + b"X: a\x00b\r\n\r\n", 400),
    ("a CR in a field", A[:-2] + b"X: a\rb\r\n\r\n", 400),
    ("a space before the first field", A.replace(b"Host", b" Host"), 400),
    ("two lengths", POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    ("a list of lengths", POST + b"Content-Length: 1, 1\r\n\r\na", 400),
    ("a negative length", POST + b"Content-Length: -1\r\n\r\n", 400),
    ("a length with a sign", POST + b"Content-Length: +1\r\n\r\na", 400),
    ("a length in hexadecimal", POST + b"Content-Length: 0x1\r\n\r\na", 400),
    ("an endless length", POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", (400, 413)),
    ("a length and chunks", CHUNKED + b"Content-Length: 1\r\n\r\n0\r\n\r\n", 400),
    ("chunks, then more codings", CHUNKED.replace(b"ked", b"ked, gzip") + b"\r\n0\r\n\r\n", 400),
    ("another coding, then chunks", CHUNKED.replace(b"chu", b"gzip, chu") + b"\r\n0\r\n\r\n", 400),
    ("chunks of HTTP/1.0", CHUNKED.replace(b"/1.1", b"/1.0") + b"\r\n0\r\n\r\n", 400),
    ("an unknown coding", CHUNKED.replace(b"chunked", b"gzip") + b"\r\n0\r\n\r\n", 400),
    ("a chunk without a size", CHUNKED + b"\r\n\r\na\r\n0\r\n\r\n", 400),
    ("a chunk of no number", CHUNKED + b"\r\nx\r\na\r\n0\r\n\r\n", 400),
    ("a chunk longer than its size", CHUNKED + b"\r\n1\r\nabc\r\n0\r\n\r\n", 400),
    ("an endless chunk", CHUNKED + b"\r\n" + b"f" * 20 + b"\r\na", (400, 413)),
    ("a body that ends early", POST + b"Content-Length: 5\r\n\r\nhe", 400),
    ("chunks that end early", CHUNKED + b"\r\n5\r\nhe", 400),
    ("a head that ends early", A[:20], 400),
    ("a long line", b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 431),
    ("a long field", A[:-2] + b"X: " + b"a" * 3000 + b"\r\n\r\n", 431),
    ("many fields", A[:-2] + b"X: a\r\n" * 200 + b"\r\n", 431),
    ("a long body", POST + b"Content-Length: 1001\r\n\r\n" + b"a" * 1001, 413),
    ("many chunks", CHUNKED + b"\r\n" + b"64\r\n" + b"a" * 100 + b"\r\n3e8\r\n" + b"a" * 1000, 413),
    ("a tunnel", b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    ("the server itself", b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    ("another method", A.replace(b"GET", b"DELETE"), 405),
    ("another path", A.replace(b"/drpc/echo/a", b"/other"), 404),
    ("a path of two slashes", A.replace(b"/drpc/echo/a", b"//drpc/echo/a"), 404),
    ("no UTF-8", A.replace(b"/a ", b"/%ff "), 400),
    ("bytes beyond ASCII", A.replace(b"/a ", b"/\xc3\xbc "), (200, 400)),
    ("a host of another site", A.replace(b"localhost", b"news.example"), 403),
    ("another site's, absolute", A.replace(b"/drpc", b"http://news.example/drpc"), 403),
]


@pytest.mark.parametrize(
    ("raw", "status"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_a_request_is_refused_once(
    server: DRPCServer, raw: bytes, status: int | tuple[int, ...]
) -> None:
    _, answers = asked(server, raw)
    [(found, _, headers)] = answers
    assert found in (status if isinstance(status, tuple) else (status,))
    assert headers["x-content-type-options"] == "nosniff"
    assert "date" in headers


@pytest.mark.parametrize("behind", [b"hello\r\n\r\n", A.replace(HOST, b""), b"GET /" + b"a" * 3000])
def test_what_is_wrong_behind_a_request_is_told_behind_its_answer(
    server: DRPCServer, behind: bytes
) -> None:
    _, (first, second) = asked(server, A + behind)
    assert first[:2] == (200, b'[["a"]]')
    assert second.status >= 400
    assert second.headers["connection"] == "close"


def test_to_go_on_is_said_behind_the_answers_before(server: DRPCServer) -> None:
    head = POST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as client:
        client.sendall(A * 20 + head)
        received = b""
        while b"100 Continue" not in received:
            received += client.recv(2**16)
        assert received.count(b'[["a"]]') == 20
        client.sendall(b"b")
        client.shutdown(socket.SHUT_WR)
        assert everything(client).endswith(b'[["b"]]')


def test_to_go_on_is_not_said_to_http_1_0(server: DRPCServer) -> None:
    head = b"POST /drpc/echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nb"
    interim, answers = asked(server, head)
    assert (interim, [each[:2] for each in answers]) == ([], echoed("b"))


@pytest.mark.parametrize(
    "path", ["/drpc/echo/a", "/", "/healthz", "/metrics", "/plan.json", "/events", "/api/v1/state"]
)
def test_head_is_answered_wherever_get_is(server: DRPCServer, path: str) -> None:
    raw = b"HEAD %b HTTP/1.1\r\n" % path.encode() + HOST + b"\r\n"
    _, [answer] = asked(server, raw)
    assert answer[:2] == (200, b"")
    assert answer.headers["content-type"]
