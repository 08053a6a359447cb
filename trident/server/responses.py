"""What HTTP responses are made of: JSON as Storm's, for answers and for errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trident.drpc.errors import MalformedRequestError
from trident.server.failure_log import log_failure
from trident.wire.errors import error_json, public_error
from trident.wire.headers import KNOWN_IDS

JSON = ("Content-Type", "application/json")
ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (KNOWN_IDS.lower().encode(), b"1"),
]
"""Headers of every response: a browser neither guesses what it is nor hands it to other sites, and
a client may repeat a request whose answer was lost."""


def response(status: int, body: bytes, *headers: tuple[str, str]) -> Response:
    """Make a response of JSON, or of the type that its headers give."""
    answer = Response(body, status)
    has_type = any(name == "Content-Type" for name, _ in headers)
    answer.raw_headers += [
        (name.lower().encode(), value.encode("latin-1", errors="replace"))
        for name, value in (headers if has_type else (JSON, *headers))
    ]
    return answer


class StreamedResponse(StreamingResponse):
    """A response that goes on until the client or the server ends it.

    The next part is made when the client has taken the one before.
    """

    def __init__(self, parts: AsyncGenerator[bytes, None], *headers: tuple[str, str]) -> None:
        # No other request can be answered after a response without an end.
        super().__init__(parts, headers={**dict(headers), "Connection": "close"})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["http_version"] == "1.0":  # which has no chunks
            refused = error_response(505, "HTTP_VERSION", "this is sent over HTTP/1.1 only")
            await refused(scope, receive, send)
        elif scope["method"] == "HEAD":
            await Response(headers=dict(self.headers))(scope, receive, send)
        else:
            async with aclosing(self._parts):
                await self.stream_response(send)


def failure(error: Exception) -> Response:
    """Make the response to a request that has failed, with Storm's JSON."""
    log_failure(error)
    public = public_error(error)
    headers = {401: ("WWW-Authenticate", "Bearer"), 503: ("Retry-After", "1")}
    more = (headers[public.status],) if public.status in headers else ()
    return error_response(public.status, public.error, public.message, *more, **public.details)


def error_response(
    status: int, name: str, message: str, *headers: tuple[str, str], **details: object
) -> Response:
    """Make a response of Storm's JSON: the name of an error, its message, and more for programs."""
    return response(status, error_json(name, message, **details), *headers)


def utf8(text: bytes, what: str) -> str:
    """Decode UTF-8; for other bytes raises MalformedRequestError, which calls them `what`."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        problem = f"{what} must be UTF-8, which ends at byte {error.start}"
        raise MalformedRequestError(problem) from error
