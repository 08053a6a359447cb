"""HTTP/1.1 by uvicorn, with this server's limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Any

import httptools
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from trident.drpc.errors import ArgumentsTooLargeError, DRPCQueueFullError, MalformedRequestError
from trident.server.answering import AnsweringConnection
from trident.server.connection import Connections
from trident.server.responses import ALWAYS, error_response, failure

_MOST_HEADERS = 100
_KEPT_BESIDES = 3_000
"""Bytes of memory for a request that waits for the one before it, besides its own."""
_HOST = re.compile(rb"[^\s/?#@\\,]*")
_ABSOLUTE = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE)


def http_protocol(connections: Connections, app: ASGIApp) -> Callable[[], HTTPProtocol]:
    """Return what makes a connection for an application."""

    async def cancellable(scope: Scope, receive: Receive, send: Send) -> None:
        # The connection cancels it when nobody waits for the answer any more.
        with suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    config = Config(
        cancellable,
        http=HTTPProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
    )
    config.load()
    state = ServerState()
    return lambda: HTTPProtocol(connections, config, state)


class HTTPProtocol(AnsweringConnection, HttpToolsProtocol):
    """A connection that speaks HTTP."""

    def __init__(self, connections: Connections, config: Config, state: ServerState) -> None:
        HttpToolsProtocol.__init__(self, config, state, {})
        AnsweringConnection.__init__(self, connections, connections.limits.idle)
        self.access_log = False
        self._phase = "coming"
        self._running: RequestResponseCycle | None = None
        self._waiting_bytes: dict[RequestResponseCycle, int] = {}
        self._piece_bytes = 0
        self._clear()

    def _clear(self) -> None:
        """Begin to count the bytes of a request."""
        self._head_bytes = self._header_count = self._body_bytes = 0
        # What the parser may keep: of the piece that the request began in, and of all since it last
        # gave a part of the body.
        self._first_piece_bytes = self._kept_bytes = 0
        self._begun = False
        self._in_head = True

    # Called by the transport:

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not self._join(transport, self.limits.slow):
            transport.write(_as_bytes(failure(self._full())))
            transport.close()
            return
        HttpToolsProtocol.connection_made(self, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.among.received -= sum(self._waiting_bytes.values())
        self._waiting_bytes.clear()
        self.pipeline.clear()
        AnsweringConnection.connection_lost(self, exc)
        HttpToolsProtocol.connection_lost(self, exc)

    def _take(self, data: bytes) -> None:
        self._piece_bytes = len(data)
        self._kept_bytes += len(data)
        self._parse(data)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Give a client that sends no more its answers, soon."""
        if self._phase == "ended":
            return False
        if self._begun:
            self._refuse(failure(MalformedRequestError("its end has not come")))
        self._ends = self._half_closed = True
        self._go_on()
        return self.transport.can_write_eof() and not self.transport.is_closing()

    def pause_writing(self) -> None:
        if self._running is not None and self._running.chunked_encoding:
            self.flow.pause_writing()  # the next part is made when this one is taken
        super().pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        super().resume_writing()

    # Called for all connections of the server:

    def out_of_time(self) -> None:
        if self._begun and self._phase == "coming" and not self.transport.is_closing():
            message = "the request took too long to come"
            self._refuse(error_response(408, "REQUEST_TIMEOUT", message))
            self._go_on()
        else:
            super().out_of_time()

    def close_when_idle(self) -> None:
        self._ends = True
        self._drop_incomplete()
        streams = self._running is not None and self._running.response_started
        if streams or (self._running is None and not self.pipeline):
            self._close()
        elif (last := self.pipeline[0][0] if self.pipeline else self._running) is not None:
            last.keep_alive = False

    # Called by the parser:

    def on_message_begin(self) -> None:
        if self._ends:
            raise _Refused
        self._clear()
        self._begun = True
        self._first_piece_bytes = self._piece_bytes  # at most: the request may begin within it
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._count_head(len(name) + len(value))
        if self._in_head:  # a token after the last chunk doesn't count
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self.url == b"*" or self.parser.get_method() == b"CONNECT":
            self._refuse_now(_no_method())
        if self.parser.should_upgrade():
            return  # it is read again, without its upgrade
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._refuse_now(error_response(505, "HTTP_VERSION", "there is HTTP/1.1 and HTTP/1.0"))
        self._check_host(version)
        headers = dict(self.headers)
        coding = headers.get(b"transfer-encoding", b"chunked").lower()
        if coding != b"chunked" or (version == "1.0" and b"transfer-encoding" in headers):
            # A proxy before this server may read it in another way, and find another end.
            self._refuse_now(
                failure(MalformedRequestError("its Transfer-Encoding isn't chunked alone"))
            )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.limits.args:
            self._refuse_now(self._too_large())
        super().on_headers_complete()
        self.cycle.default_headers = [_date()]
        self.cycle.transport = _Joined(self.transport, self.cycle)
        if version == "1.0":
            self.cycle.waiting_for_100_continue = False

    def on_body(self, body: bytes) -> None:
        self._kept_bytes = 0  # it is counted as body now
        self._body_bytes += len(body)
        if self._body_bytes > self.limits.args:
            self._refuse_now(self._too_large())
        if not self.set_received(self._head_bytes + self._body_bytes):
            self._refuse_now(failure(self._full()))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self.set_received(0)
        if self.cycle is not self._running and not self.cycle.response_complete:
            self._waiting_bytes[self.cycle] = kept = (
                self._head_bytes + self._body_bytes + _KEPT_BESIDES
            )
            self.among.received += kept
        self._ends = self._ends or not self.cycle.keep_alive
        self._clear()

    # Called by the cycle of a request and its response:

    def on_response_complete(self) -> None:
        if self._running is not None:
            self._running.transport.write(b"")  # what is kept until now
        self._running = self._task = None
        self.look()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.untaken():
            self.pipeline.append((cycle, app))
            return
        self.among.received -= self._waiting_bytes.pop(cycle, 0)
        self._running = cycle
        self._task = self.loop.create_task(cycle.run_asgi(app))

    def _answer_next(self) -> None:
        self._start_asgi_task(*self.pipeline.pop())

    def _is_answering(self) -> bool:
        return self._running is not None and not self._running.more_body

    def _parse(self, data: bytes) -> None:
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    data = b""
                except httptools.HttpParserUpgrade as upgrade:
                    data = self._without_upgrade() + data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            if not self._ends:  # a refused request has its answer already
                problem = f"it is no HTTP ({str(error)[:100]})"
                self._refuse(failure(MalformedRequestError(problem)))
        else:
            # The parser keeps an incomplete line, of the head or after the last chunk.
            if self._kept_bytes > self.limits.head:
                self._refuse(_too_large_head())
                return
            # The parser may keep a part of the first piece until the request is complete.
            known = self._head_bytes + self._body_bytes
            known = (
                self._first_piece_bytes if self._in_head else max(self._first_piece_bytes, known)
            )
            if self._begun and not self.set_received(known + self._kept_bytes):
                self._refuse(failure(self._full()))

    def _without_upgrade(self) -> bytes:
        """Return the head again, without its upgrade.

        httptools, and so uvicorn, skips the body of a request that offers another protocol, such as
        HTTP/2.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        lines = [b"%b: %b" % field for field in self.headers if field[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self._clear()
        return b"\r\n".join([b"%b %b HTTP/%b" % (method, self.url, version), *lines, b"", b""])

    def _check_host(self, version: str) -> None:
        """Refuse a request without exactly one host; a host in its target replaces it."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            self._refuse_now(failure(MalformedRequestError("it has none or several Host")))
        if hosts and not _HOST.fullmatch(hosts[0]):
            self._refuse_now(failure(MalformedRequestError("its Host is no host")))
        if absolute := _ABSOLUTE.fullmatch(self.url):
            host, path = absolute.groups()
            others = [field for field in self.headers if field[0] != b"host"]
            self.headers[:] = [*others, (b"host", host)]
            self.url = path if path.startswith(b"/") else b"/" + path

    def _count_head(self, size: int) -> None:
        """Count bytes of the head."""
        self._head_bytes += size
        if self._head_bytes > self.limits.head or self._header_count > _MOST_HEADERS:
            self._refuse_now(_too_large_head())

    def _refuse_now(self, response: Response) -> None:
        """Refuse a request, and stop the parser by an error."""
        self._refuse(response)
        raise _Refused

    def _refuse(self, response: Response) -> None:
        """Read no more requests, and end when the others and this one are answered."""
        self._ends = True
        self._last = _as_bytes(response)
        self._drop_incomplete()

    def _drop_incomplete(self) -> None:
        """Forget a request that has come in part, and cancel its task."""
        if self._running is not None and self._running.more_body:
            self._abandon()
        elif self.pipeline and self.pipeline[0][0].more_body:
            self.pipeline.popleft()
        self._begun = False
        self.set_received(0)

    def _abandon(self) -> None:
        if self._running is not None:
            self._running.disconnected = True
            self._running = None
        super()._abandon()

    def _too_large(self) -> Response:
        function = self.url.decode("latin-1").removeprefix("/drpc/").partition("?")[0]
        return failure(ArgumentsTooLargeError(function, self.limits.args))

    def _full(self) -> DRPCQueueFullError:
        return DRPCQueueFullError("the server", len(self.among))


class _Joined(asyncio.Transport):
    """Writes the head of a response with its body, in one packet."""

    def __init__(self, transport: asyncio.Transport, cycle: RequestResponseCycle) -> None:
        super().__init__()
        self._transport = transport
        self._cycle = cycle
        self._kept = b""

    def write(self, data: Any) -> None:
        cycle = self._cycle
        self._kept += data
        if cycle.chunked_encoding or cycle.response_complete or not cycle.response_started:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._kept:
            self._transport.write(self._kept)
        self._kept = b""

    def is_closing(self) -> bool:
        return self._transport.is_closing()


class _Refused(Exception):
    """A request was refused before it was complete."""


def _as_bytes(response: Response) -> bytes:
    """Return the last response of a connection as bytes."""
    headers = [_date(), *response.raw_headers, *ALWAYS, (b"connection", b"close")]
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body)


def _date() -> tuple[bytes, bytes]:
    return b"date", formatdate(usegmt=True).encode()


def _no_method() -> Response:
    """The response to a request for the server itself, or for a connection to another one."""
    allowed = "GET, HEAD, POST"
    return error_response(405, "METHOD_NOT_ALLOWED", f"there is {allowed}", ("Allow", allowed))


def _too_large_head() -> Response:
    return error_response(431, "REQUEST_TOO_LARGE", "send large arguments by POST")
