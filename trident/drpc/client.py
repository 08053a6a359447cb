"""A client of DRPC servers: this library's, and Storm's."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from trident.drpc.errors import (
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
from trident.drpc.outcomes import ExceptionType
from trident.drpc.thrift_binary import (
    CALL,
    EXCEPTION,
    ThriftError,
    framed,
    read_message,
    written_message,
)

_PORTS = {"http": 3774, "https": 3774, "thrift": 3772, "thrifts": 3772}
_KEPT = 16
"""Idle connections to one server."""
_ELSEWHERE = (DRPCClosedError, DRPCQueueFullError, DRPCUnavailableError)
"""What one server says, and another need not."""


class DRPCClient:
    """Calls functions of DRPC servers; where one can't answer, the next one is asked.

    A query changes nothing, so it may be asked again. The server that answered last is asked first.
    May be called by any number of threads: each call has a connection for itself while it lasts.

    Parameters
    ----------
    *servers : str
        ``"host:port"`` or ``"http://host:port"``, ``"https://…"``, and of Thrift
        ``"thrift://host:port"``, or ``"thrifts://…"`` over TLS; the ports are by default those of
        Storm, 3774 and 3772.
    timeout : float
        Seconds that a call takes at most, with all servers that it asks.
    token : str, optional
        Of whoever calls; over HTTP only.
    ca : path, optional
        PEM file of who signs the servers' certificates; by default those of the system.
    certfile, keyfile : path, optional
        PEM files of the client's own certificate and its key.

    Raises
    ------
    DRPCUsageError
        For an address that is none.

    Examples
    --------
    >>> from trident import TridentTopology
    >>> from trident.drpc.server import DRPCServer
    >>> topology = TridentTopology()
    >>> _ = topology.newDRPCStream("upper").map(str.upper, "text")
    >>> with DRPCServer(topology, port=0) as server:
    ...     with DRPCClient("127.0.0.1:1", server.url) as client:
    ...         client.execute("upper", "cat")
    '[["CAT"]]'
    """

    def __init__(
        self,
        *servers: str,
        timeout: float = 5.0,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        certfile: str | os.PathLike[str] | None = None,
        keyfile: str | os.PathLike[str] | None = None,
    ) -> None:
        if not servers:
            raise DRPCUsageError("DRPCClient: give a server", "", (), "As in 'localhost:3774'.")
        _check_seconds(timeout)
        if token is not None and not token.isprintable():
            raise DRPCUsageError("DRPCClient: a token is one line of text that can be shown")
        self._timeout = timeout
        tls = _tls(ca, certfile, keyfile) if any("s://" in each for each in servers) else None
        self._servers = [_server(each, token, tls) for each in servers]
        self._first = 0

    def execute(self, function: str, args: str = "", timeout: float | None = None) -> str:
        """Call a function.

        Parameters
        ----------
        function, args : str
            The request.
        timeout : float, optional
            Seconds, by default those of the client.

        Returns
        -------
        str
            JSON, as `LocalDRPC.execute` returns.

        Raises
        ------
        NoServerError
            When no server could be reached.
        DRPCError
            What `LocalDRPC.execute` raises, as the last server that was asked told it.
        """
        if timeout is not None:
            _check_seconds(timeout)
        _check_text(function, args)
        seconds = self._timeout if timeout is None else timeout
        began = monotonic()
        until = began + seconds
        problems: list[str] = []
        told: DRPCError | None = None
        first = self._first
        for index in range(len(self._servers)):
            position = (first + index) % len(self._servers)
            server = self._servers[position]
            left = until - monotonic()
            if left <= 0:
                break
            try:
                answer = server.execute(function, args, until, left / (len(self._servers) - index))
            except TimeoutError as error:
                # It may hang, so the next call begins with another one.
                self._first = (position + 1) % len(self._servers)
                if isinstance(error, DRPCTimeoutError):
                    raise
                break
            except _ELSEWHERE as error:
                told = error
            except (OSError, HTTPException, ThriftError, UnicodeError) as error:
                problems.append(f"{server.address}: {error or type(error).__name__}")
            else:
                self._first = position
                return answer
        if told is not None:
            raise told
        if len(problems) == len(self._servers):
            raise NoServerError("; ".join(problems))
        raise DRPCTimeoutError(function, monotonic() - began, 0)

    async def execute_async(
        self, function: str, args: str = "", timeout: float | None = None
    ) -> str:
        """Call a function without blocking the event loop; as :meth:`execute`, in a thread."""
        return await asyncio.to_thread(self.execute, function, args, timeout)

    def close(self) -> None:
        """End the idle connections; may be repeated."""
        for server in self._servers:
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ABC):
    """One server, and the idle connections to it."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host, self.port, self.tls = host, port, tls
        self.address = f"{host}:{port}"
        self._idle: deque[tuple[int, Any]] = deque()  # each with the process that made it

    def execute(self, function: str, args: str, until: float, connecting: float) -> str:
        """Call a function, with an idle connection if there is one.

        Parameters
        ----------
        function, args : str
            The request.
        until : float
            When its time is over.
        connecting : float
            How many seconds to wait for a connection at most.
        """
        while True:
            try:
                process, connection = self._idle.pop()
            except IndexError:
                break
            if process != os.getpid():  # it is the parent's, which would get our answers
                connection.close()
                continue
            try:
                return self._with(connection, function, args, until)
            except TimeoutError:
                raise
            except (OSError, HTTPException, ThriftError):
                continue  # the server had ended it meanwhile
        try:
            connection = self.connect(connecting)
        except TimeoutError as error:
            raise ConnectionError(f"no connection within {connecting:.2f} s") from error
        return self._with(connection, function, args, until)

    def close(self) -> None:
        """End the idle connections."""
        while self._idle:
            try:
                _, connection = self._idle.pop()
            except IndexError:
                return
            connection.close()

    @abstractmethod
    def connect(self, seconds: float) -> Any:
        """A new connection."""

    @abstractmethod
    def ask(
        self, connection: Any, function: str, args: str, seconds: float
    ) -> Callable[[], str]:
        """Call a function; what is returned gives its answer, or raises what the server told."""

    def _with(self, connection: Any, function: str, args: str, until: float) -> str:
        """Call a function, and keep the connection where it can be used again."""
        try:
            answer = self.ask(connection, function, args, max(0.001, until - monotonic()))
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < _KEPT:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()
        return answer()


class _HTTPServer(_Server):
    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, token: str | None) -> None:
        super().__init__(host, port, tls)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def connect(self, seconds: float) -> HTTPConnection:
        if self.tls is not None:
            made: HTTPConnection = HTTPSConnection(
                self.host, self.port, timeout=seconds, context=self.tls
            )
        else:
            made = HTTPConnection(self.host, self.port, timeout=seconds)
        made.connect()
        return made

    def ask(
        self, connection: HTTPConnection, function: str, args: str, seconds: float
    ) -> Callable[[], str]:
        if connection.sock is None:  # the answer before was the last of that connection
            raise ConnectionResetError("the server has ended the connection")
        connection.sock.settimeout(seconds)
        # A little less than the client's, so that the server tells what it knows of the delay.
        headers = {**self._headers, "X-DRPC-Timeout": f"{max(seconds * 0.9, seconds - 0.1):.3f}"}
        path = f"/drpc/{quote(function, safe='')}"
        connection.request("POST", path, args.encode(), headers)
        response = connection.getresponse()
        body = response.read()
        return lambda: _http_answer(function, args, response.status, body)


class _ThriftServer(_Server):
    def connect(self, seconds: float) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            return self.tls.wrap_socket(connection, server_hostname=self.host)
        return connection

    def ask(
        self, connection: socket.socket, function: str, args: str, seconds: float
    ) -> Callable[[], str]:
        until = monotonic() + seconds
        connection.settimeout(seconds)
        connection.sendall(framed(written_message("execute", CALL, 0, {1: function, 2: args})))
        size = int.from_bytes(_received(connection, 4, until), "big")
        reply = read_message(_received(connection, size, until))
        return lambda: _thrift_answer(function, args, reply.kind, dict(reply.fields))


def _received(connection: socket.socket, size: int, until: float) -> bytes:
    """So many bytes."""
    parts = []
    while size:
        connection.settimeout(max(0.001, until - monotonic()))
        part = connection.recv(min(size, 2**16))
        if not part:
            raise ConnectionResetError("the server has ended the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _http_answer(function: str, args: str, status: int, body: bytes) -> str:
    """The answer, or what the server told."""
    if status == 200:
        return body.decode()
    try:
        told = json.loads(body)
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    message = str(told.get("errorMessage", f"status {status}"))
    waiting = int(told.get("queueLength", 0))
    match status:
        case 504:
            raise DRPCTimeoutError(function, float(told.get("elapsed", 0.0)), waiting)
        case 503 if told.get("error") == "QUEUE_FULL":
            raise DRPCQueueFullError(function, waiting)
        case 503 if told.get("error") == "SERVER_SHUTDOWN":
            raise DRPCClosedError(function)
        case 503:
            raise DRPCUnavailableError(function, args, message)
        case 404 if told.get("error") == "UNKNOWN_FUNCTION":
            raise UnknownFunctionError(function, told.get("functions", ()))
        case 413:
            raise ArgumentsTooLargeError(function, int(told.get("limit", 0)))
        case 401:
            raise DRPCAccessError(function)
        case 403:
            raise DRPCAccessError(function, "the owner of the token")
        case 400 if told.get("error") == "MALFORMED_REQUEST":
            raise MalformedRequestError(message)
        case 400:
            raise DRPCExecutionError(function, args, message)
    raise DRPCInternalError(function, args, message)


def _thrift_answer(function: str, args: str, kind: int, fields: dict[int, Any]) -> str:
    """The answer, or what the server told."""
    if kind == EXCEPTION:
        raise DRPCInternalError(function, args, str(fields.get(1, "no reason was told")))
    if isinstance(answer := fields.get(0), str):
        return answer
    if isinstance(refused := fields.get(2), dict):
        raise DRPCAccessError(function, str(refused.get(1)))
    told = fields.get(1)
    failed = told if isinstance(told, dict) else {}
    message = str(failed.get(1, "no reason was told"))
    match failed.get(2):
        case ExceptionType.SERVER_TIMEOUT:
            raise DRPCTimeoutError(function, 0.0, 0)
        case ExceptionType.SERVER_SHUTDOWN:
            raise DRPCClosedError(function)
        case ExceptionType.FAILED_REQUEST:
            raise DRPCExecutionError(function, args, message)
    raise DRPCInternalError(function, args, message)


def _server(address: str, token: str | None, tls: ssl.SSLContext | None) -> _Server:
    """The server of an address."""
    text = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/"):
        advice = "Write host:port, http://host:port or thrift://host:port."
        raise DRPCUsageError("DRPCClient: this is no address of a server:", address, (), advice)
    secure = tls if parts.scheme in ("https", "thrifts") else None
    port = port or _PORTS[parts.scheme]
    if parts.scheme.startswith("http"):
        return _HTTPServer(parts.hostname, port, secure, token)
    if token is not None:
        advice = "Use http://, or let the server answer the function to anyone ('*')."
        raise DRPCUsageError("DRPCClient: Thrift carries no token, to", address, (), advice)
    return _ThriftServer(parts.hostname, port, secure)


def _tls(ca: Any, certfile: Any, keyfile: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
        if certfile is not None:
            context.load_cert_chain(certfile, keyfile)
    except OSError as error:
        what = f"DRPCClient: no certificate can be read of ca=, certfile=, keyfile= ({error})"
        raise DRPCUsageError(what) from error
    return context


def _check_text(function: str, args: str) -> None:
    for what, text in (("function", function), ("arguments", args)):
        if not isinstance(text, str):
            raise DRPCUsageError(f"execute: the {what} must be a str, found", type(text).__name__)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MalformedRequestError(f"the {what} hold a character that has no UTF-8") from error


def _check_seconds(timeout: object) -> None:
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout < float("inf"):  # type: ignore[operator]
        what = "DRPCClient: the timeout is a number of seconds, found"
        raise DRPCUsageError(what, repr(timeout))
