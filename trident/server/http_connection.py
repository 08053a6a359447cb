"""HTTP/1.1: from bytes to requests, and from responses to bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import httptools

from trident.drpc.errors import ArgumentsTooLargeError, DRPCQueueFullError, MalformedRequestError
from trident.server.connection import Connection, Connections
from trident.server.other_sites import Answers
from trident.server.router import JSON, Request, Response, Streamed, failure

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_MOST_HEADERS = 100


class HTTPConnection(Connection):
    """A connection that speaks HTTP.

    Parameters
    ----------
    connections : Connections
        Those of the server.
    router : Answers
        What answers.
    """

    def __init__(self, connections: Connections, router: Answers) -> None:
        super().__init__(connections)
        self._router = router
        self._parser = httptools.HttpRequestParser(self)
        self._came = 0
        self._clear()

    def _clear(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._in_head = True
        self._fed = self._head = self._first = 0
        self._body = bytearray()
        self._begun = False
        self._refused = False

    def take(self, data: bytes) -> None:
        self._fed += len(data)
        self._came = len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.end()  # what follows is another protocol; the request itself is answered
        except httptools.HttpParserError as error:
            if not self._refused and not self._ends:  # the last request has its one answer
                problem = f"it is no HTTP ({str(error)[:100]})"
                self._refuse(failure(MalformedRequestError(problem)))
        else:
            # The parser keeps a line that has no end yet, of the head or after the last chunk.
            if self._fed > self.limits.head:
                self._refuse(_too_large_head())
                return
            # Of what came with its beginning the parser may keep a part, as long as any has come.
            known = self._head + len(self._body)
            known = self._first if self._in_head else max(self._first, known)
            if self._begun and not self.held(known + self._fed):
                self._refuse(failure(DRPCQueueFullError("the server", len(self.connections))))

    # What follows is called by the parser.

    def on_message_begin(self) -> None:
        self._clear()
        self._begun = True
        self._first = self._came  # at most; where in it the request begins isn't known

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._counted(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._counted(len(name) + len(value))
        if self._in_head:  # what follows the last chunk is none of the caller's token
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_head = False
        length = self._headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self.limits.args:
            self._stop(self._too_large())
        if self._headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._fed = 0  # what is kept now is counted as the body
        self._body += body
        if len(self._body) > self.limits.args:
            self._stop(self._too_large())
        if not self.held(self._head + len(self._body)):
            self._stop(failure(DRPCQueueFullError(self._function(), len(self.connections))))

    def on_message_complete(self) -> None:
        if self._refused or self._ends:
            return
        method = self._parser.get_method().decode("latin-1")
        target = self._target.decode("latin-1")
        request = Request(method, target, self._headers, bytes(self._body))
        keeps = self._parser.should_keep_alive()
        size = self._head + len(self._body)
        self.held(0)
        self._clear()
        self.request((request, keeps), size)
        if not keeps:
            self.end()

    async def answer(self, request: Any) -> bytes | AsyncGenerator[bytes, None]:
        asked, keeps = request
        response = await self._router.answer(asked)
        if isinstance(response, Streamed):
            return _streamed(response)
        return written(response, keeps and not self.connections.closing, asked.method != "HEAD")

    def refuse(self) -> bytes:
        return written(failure(DRPCQueueFullError("the server", len(self.connections))), False)

    def too_slow(self) -> bytes:
        body = b'{"error":"REQUEST_TIMEOUT","errorMessage":"the request took too long to come"}'
        return written(Response(408, body), False)

    def _partly(self) -> bool:
        return self._begun

    def _function(self) -> str:
        return self._target.decode("latin-1").removeprefix("/drpc/").partition("?")[0]

    def _counted(self, size: int) -> None:
        """So many bytes of the head have come."""
        self._head += size
        if self._head > self.limits.head or len(self._headers) >= _MOST_HEADERS:
            self._stop(_too_large_head())

    def _too_large(self) -> Response:
        return failure(ArgumentsTooLargeError(self._function(), self.limits.args))

    def _stop(self, response: Response) -> None:
        """Answer, and read no more; raised through the parser, which stops there."""
        self._refuse(response)
        raise _Stopped

    def _refuse(self, response: Response) -> None:
        self._refused = True
        self._body = bytearray()
        self._begun = False
        self.end(written(response, False))


class _Stopped(Exception):
    """A request was refused before its end."""


def written(response: Response, keeps: bool, with_body: bool = True) -> bytes:
    """A response as bytes.

    Examples
    --------
    >>> written(Response(200, b"[]"), True)
    b'HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n[]'
    """
    status, body, headers = response
    if status != 304:  # where it would be the length of what isn't sent
        headers = (*headers, ("Content-Length", str(len(body))))
    head = _head(status, headers, keeps)
    return head + body if with_body else head


async def _streamed(response: Streamed) -> AsyncGenerator[bytes, None]:
    """A response without a length: its end is that of the connection."""
    async with aclosing(response.parts) as parts:
        yield _head(response.status, response.headers, False)
        async for part in parts:
            yield part


def _head(status: int, headers: tuple[tuple[str, str], ...], keeps: bool) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if not keeps:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", errors="replace")


def _too_large_head() -> Response:
    body = b'{"error":"REQUEST_TOO_LARGE","errorMessage":"send large arguments by POST"}'
    return Response(431, body, (JSON,))
