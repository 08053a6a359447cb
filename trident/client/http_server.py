"""How a server is asked over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import partial
from http.client import HTTPException, HTTPResponse
from io import BufferedReader, RawIOBase
from time import monotonic
from typing import Any
from urllib.parse import quote

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Retry, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NewConnectionError, ReadTimeoutError
from urllib3.util import SKIP_HEADER

from trident.client.server import FunctionRequest, LostError, PerProcess, Server, Within
from trident.wire.errors import read_error
from trident.wire.headers import KNOWN_IDS, REQUEST_ID, TIMEOUT

_KEPT = 64
"""Idle connections to one server."""
_ONCE = Retry(total=False, redirect=False)
"""Nothing is repeated here: `Client` knows what may be repeated."""


class HTTPServer(Server):
    """A server of HTTP."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, token: str | None) -> None:
        super().__init__(host, port)
        # No server has a use for urllib3's own headers.
        self._headers = {"User-Agent": SKIP_HEADER, "Accept-Encoding": SKIP_HEADER}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool: PerProcess[HTTPConnectionPool] = PerProcess(
            partial(_Pool, host, port, maxsize=_KEPT)
            if tls is None
            else partial(_SecurePool, host, port, maxsize=_KEPT, ssl_context=tls)
        )

    def _ask_for_ids(self, within: Within) -> bool:
        return KNOWN_IDS in self.request("GET", "/drpc", None, within).headers  # which is no path

    def _execute(self, asked: FunctionRequest, within: Within) -> str:
        path = f"/drpc/{quote(asked.function, safe='')}"
        known = {REQUEST_ID: asked.id}
        answer = self.request("POST", path, asked.args.encode(), within, known)
        if answer.status != 200:
            raise read_error(asked.function, asked.args, answer.status, answer.data)
        return answer.data.decode()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        within: Within,
        headers: Mapping[str, str] | None = None,
    ) -> BaseHTTPResponse:
        """Send a request, once; return its whole response."""
        seconds = within.remaining()
        # A little less than the client's, so that the server's own error comes in time.
        asked = {TIMEOUT: f"{max(seconds * 0.9, seconds - 0.1):.3f}"}
        try:
            return self._pool.get().urlopen(
                method,
                path,
                body,
                {**self._headers, **asked, **(headers or {})},
                retries=_ONCE,
                timeout=Timeout(connect=within.connecting, total=seconds),
                decode_content=False,
            )
        except ReadTimeoutError as error:
            raise TimeoutError(str(error)) from error
        except NewConnectionError as error:
            raise ConnectionError(str(error.__cause__ or error)) from error
        except HTTPError as error:
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        pool = self._pool.pop()
        if pool is not None:
            pool.close()


class _TimedResponse(HTTPResponse):
    """A response that has to be complete at a given time, even if its server sends a byte now and
    then."""

    def __init__(self, sock: Any, *given: Any, until: float, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        timed: Any = BufferedReader(_Until(sock, until))
        self.fp.close()
        self.fp = timed


class _Until(RawIOBase):
    """What a socket receives until a given time."""

    def __init__(self, sock: Any, until: float) -> None:
        self._sock = sock
        # It stays open when the connection closes the socket before the body.
        self._received = sock.makefile("rb", buffering=0)
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        self._sock.settimeout(max(0.001, self._until - monotonic()))
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()


class _PlainConnection(HTTPConnection):
    """A connection that tells a lost answer from a request that was never sent."""

    def getresponse(self) -> Any:
        until = monotonic() + float(self.timeout or 0)
        self.response_class = partial(_TimedResponse, until=until)  # type: ignore[assignment]
        try:
            return super().getresponse()
        except (TimeoutError, ReadTimeoutError):
            raise
        except (OSError, HTTPException, HTTPError) as error:
            raise LostError(str(error) or type(error).__name__) from error


class _SecureConnection(_PlainConnection, HTTPSConnection):
    """The same, over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection
