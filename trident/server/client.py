"""A client of DRPC servers: this library's, and Storm's."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from secrets import token_hex
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlsplit

from trident.drpc.errors import (
    ArgumentsTooLargeError,
    DRPCAccessError,
    DRPCClosedError,
    DRPCElsewhereError,
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
from trident.drpc.request_id import check_request_id
from trident.server.outcomes import ExceptionType
from trident.server.thrift_binary import (
    BODY,
    CALL,
    EXCEPTION,
    REQUEST_ID,
    STATUS,
    ThriftError,
    framed,
    read_message,
    written_message,
)
from trident.server.timed_response import TimedResponse

T = TypeVar("T")
Ask = Callable[["Server", Any, float], Callable[[], T]]

_PORTS = {"http": 3774, "https": 3774, "thrift": 3772, "thrifts": 3772}
_KEPT = 16
"""Idle connections to one server."""
_LONGEST = 86_400.0
"""Seconds: more than a day a call has never, as a socket takes no more than 24 of them."""


class Client:
    """Asks servers; where one can't answer, the next one is asked.

    What is asked may be asked again: it changes nothing, or is known by an id. The server that
    answered last is asked first. May be called by any number of threads: each call has a connection
    for itself while it lasts.

    Parameters
    ----------
    servers : sequence of str
        Their addresses.
    schemes : collection of str
        Those that addresses may have.
    timeout : float
        Seconds that a call takes at most, with all servers that it asks.
    token : str or None
        Of whoever calls; over HTTP only.
    ca, certfile, keyfile : path or None
        Those of `DRPCClient`.
    """

    _elsewhere: tuple[type[DRPCError], ...] = (
        DRPCClosedError,
        DRPCElsewhereError,
        DRPCQueueFullError,
        DRPCUnavailableError,
    )
    """What one server says, and another need not."""

    def __init__(
        self,
        servers: Sequence[str],
        schemes: Collection[str],
        timeout: float,
        token: str | None,
        ca: str | os.PathLike[str] | None,
        certfile: str | os.PathLike[str] | None,
        keyfile: str | os.PathLike[str] | None,
    ) -> None:
        name = type(self).__name__
        if not servers:
            raise DRPCUsageError(f"{name}: give a server", "", (), "As in 'localhost:3774'.")
        _check_seconds(name, timeout)
        if token is not None and not token.isprintable():
            raise DRPCUsageError(f"{name}: a token is one line of text that can be shown")
        self._timeout = timeout
        tls = _tls(name, ca, certfile, keyfile) if any("s://" in each for each in servers) else None
        self._servers = [_server(name, each, schemes, token, tls) for each in servers]
        self._first = 0

    def _asked(self, name: str, ask: Ask[T], timeout: float | None) -> T:
        """Ask one server after the other.

        Parameters
        ----------
        name : str
            What errors call it.
        ask : callable
            Asks, by a server's connection and within some seconds; what it returns gives the
            answer, or raises what the server told.
        timeout : float or None
            Seconds; None for those of the client.

        Raises
        ------
        NoServerError
            When no server could be reached.
        DRPCError
            What the last server that was asked told.
        """
        if timeout is not None:
            _check_seconds(type(self).__name__, timeout)
        seconds = min(self._timeout if timeout is None else timeout, _LONGEST)
        began = monotonic()
        until = began + seconds
        problems: list[str] = []
        refused: list[str] = []
        told: DRPCError | None = None
        first = self._first
        for index in range(len(self._servers)):
            position = (first + index) % len(self._servers)
            server = self._servers[position]
            left = until - monotonic()
            if left <= 0:
                break
            try:
                answer = server.call(ask, until, left / (len(self._servers) - index))
            except TimeoutError as error:
                # It may hang, so the next call begins with another one.
                self._first = (position + 1) % len(self._servers)
                if isinstance(error, DRPCTimeoutError):
                    raise
                break
            except self._elsewhere as error:
                told = error
                refused.append(f"{server.address}: {error}")
            except (OSError, HTTPException, ThriftError, UnicodeError) as error:
                problems.append(f"{server.address}: {error or type(error).__name__}")
            else:
                self._first = position
                return answer
        if isinstance(told, DRPCElsewhereError) and problems:
            raise NoServerError("; ".join([*problems, *refused]))  # the run's may be among them
        if told is not None:
            raise told
        if len(problems) == len(self._servers):
            raise NoServerError("; ".join(problems))
        raise DRPCTimeoutError(name, monotonic() - began, 0)

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


class DRPCClient(Client):
    """Calls functions of DRPC servers; where one can't answer, the next one is asked.

    A query changes nothing, so it may be asked again. A request to a function that updates a state
    has an id, so that it is applied once, however often it is asked. The server that answered last
    is asked first. May be called by any number of threads: each call has a connection for itself
    while it lasts.

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
    >>> from trident.server.server import DRPCServer
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
        super().__init__(servers, _PORTS, timeout, token, ca, certfile, keyfile)

    def execute(
        self,
        function: str,
        args: str = "",
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Call a function.

        Parameters
        ----------
        function, args : str
            The request.
        timeout : float, optional
            Seconds, by default those of the client.
        request_id : str, optional
            The request's, for whoever repeats the call; see `LocalDRPC.execute`. By default a new
            one for each call.

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
        _check_text(function, args)
        check_request_id(request_id)
        asked = Asked(function, args, request_id or token_hex(16))

        def ask(server: Server, connection: Any, seconds: float) -> Callable[[], str]:
            return server.execute(connection, asked, seconds)

        return self._asked(function, ask, timeout)

    async def execute_async(
        self,
        function: str,
        args: str = "",
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Call a function without blocking the event loop; as :meth:`execute`, in a thread."""
        return await asyncio.to_thread(
            self.execute, function, args, timeout, request_id=request_id
        )


class Asked(NamedTuple):
    """A request to a function, the same at each server."""

    function: str
    args: str
    id: str


class Server(ABC):
    """One server, and the idle connections to it."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host, self.port, self.tls = host, port, tls
        self.address = f"{host}:{port}"
        self._idle: deque[tuple[int, Any]] = deque()  # each with the process that made it

    def call(self, ask: Ask[T], until: float, connecting: float) -> T:
        """Ask, with an idle connection if there is one.

        Parameters
        ----------
        ask : callable
            Asks.
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
                return self._with(connection, ask, until)
            except TimeoutError:
                raise
            except (OSError, HTTPException, ThriftError):
                continue  # the server had ended it meanwhile
        try:
            connection = self.connect(connecting)
        except TimeoutError as error:
            raise ConnectionError(f"no connection within {connecting:.2f} s") from error
        return self._with(connection, ask, until)

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
    def execute(self, connection: Any, asked: Asked, seconds: float) -> Callable[[], str]:
        """Call a function; what is returned gives its answer, or raises what the server told."""

    def _with(self, connection: Any, ask: Ask[T], until: float) -> T:
        """Ask, and keep the connection where it can be used again."""
        try:
            answer = ask(self, connection, max(0.001, until - monotonic()))
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < _KEPT:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()
        return answer()


class HTTPServer(Server):
    """A server of HTTP."""

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

    def execute(
        self, connection: HTTPConnection, asked: Asked, seconds: float
    ) -> Callable[[], str]:
        path = f"/drpc/{quote(asked.function, safe='')}"
        known = {"Idempotency-Key": asked.id}
        body = asked.args.encode()
        status, answer = self.request(connection, "POST", path, body, seconds, known)
        return lambda: http_answer(asked.function, asked.args, status, answer)

    def request(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Send a request; returns the status and the body of its response."""
        if connection.sock is None:  # the answer before was the last of that connection
            raise ConnectionResetError("the server has ended the connection")
        connection.sock.settimeout(seconds)
        # A little less than the client's, so that the server tells what it knows of the delay.
        timeout = f"{max(seconds * 0.9, seconds - 0.1):.3f}"
        until = monotonic() + seconds
        sent = {**self._headers, "X-DRPC-Timeout": timeout, **(headers or {})}
        connection.request(method, path, body, sent)
        connection.response_class = partial(TimedResponse, until=until)  # type: ignore[assignment]
        response = connection.getresponse()
        return response.status, response.read()


class _ThriftServer(Server):
    def connect(self, seconds: float) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            return self.tls.wrap_socket(connection, server_hostname=self.host)
        return connection

    def execute(
        self, connection: socket.socket, asked: Asked, seconds: float
    ) -> Callable[[], str]:
        until = monotonic() + seconds
        connection.settimeout(seconds)
        fields = {1: asked.function, 2: asked.args, REQUEST_ID: asked.id}
        connection.sendall(framed(written_message("execute", CALL, 0, fields)))
        size = int.from_bytes(_received(connection, 4, until), "big")
        reply = read_message(_received(connection, size, until))
        return lambda: _thrift_answer(
            asked.function, asked.args, reply.kind, dict(reply.fields)
        )


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


def http_answer(function: str, args: str, status: int, body: bytes) -> str:
    """The answer, or what the server told, raised."""
    if status == 200:
        return body.decode()
    try:
        told = json.loads(body)
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    message = str(told.get("errorMessage", f"status {status}"))
    waiting = int(_number(told, "queueLength"))
    match status:
        case 504:
            raise DRPCTimeoutError(function, _number(told, "elapsed"), waiting)
        case 503 if told.get("error") == "QUEUE_FULL":
            raise DRPCQueueFullError(function, waiting)
        case 503 if told.get("error") == "SERVER_SHUTDOWN":
            raise DRPCClosedError(function)
        case 503:
            raise DRPCUnavailableError(function, args, message)
        case 404 if told.get("error") == "UNKNOWN_FUNCTION":
            known = told.get("functions")
            names = known if isinstance(known, list) else ()
            raise UnknownFunctionError(function, [str(name) for name in names])
        case 421:
            raise DRPCElsewhereError(function)
        case 413:
            raise ArgumentsTooLargeError(function, int(_number(told, "limit")))
        case 401:
            raise DRPCAccessError(function)
        case 403 if told.get("error") != "OTHER_SITE":
            raise DRPCAccessError(function, "the owner of the token")
        case 400 if told.get("error") == "MALFORMED_REQUEST":
            raise MalformedRequestError(message.removeprefix("the request can't be read: "))
        case 400:
            raise DRPCExecutionError(function, args, message)
    raise DRPCInternalError(function, args, message)


def _number(told: Mapping[str, Any], name: str) -> float:
    """A number that a server has told; 0 for anything else."""
    number = told.get(name)
    return float(number) if isinstance(number, int | float) and abs(number) < 2**53 else 0.0


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
    status, body = failed.get(STATUS), failed.get(BODY)
    if isinstance(status, int) and isinstance(body, str):
        return http_answer(function, args, status, body.encode())
    message = str(failed.get(1, "no reason was told"))
    match failed.get(2):
        case ExceptionType.SERVER_TIMEOUT:
            raise DRPCTimeoutError(function, 0.0, 0)
        case ExceptionType.SERVER_SHUTDOWN:
            raise DRPCClosedError(function)
        case ExceptionType.FAILED_REQUEST:
            raise DRPCExecutionError(function, args, message)
    raise DRPCInternalError(function, args, message)


def _server(
    name: str, address: str, schemes: Collection[str], token: str | None, tls: Any
) -> Server:
    """The server of an address."""
    text = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in schemes or not parts.hostname or parts.path not in ("", "/"):
        forms = " or ".join(f"{each}://host:port" for each in schemes if not each.endswith("s"))
        advice = f"Write host:port, {forms}."
        raise DRPCUsageError(f"{name}: this is no address of a server:", address, (), advice)
    secure = tls if parts.scheme in ("https", "thrifts") else None
    port = port or _PORTS[parts.scheme]
    if parts.scheme.startswith("http"):
        return HTTPServer(parts.hostname, port, secure, token)
    if token is not None:
        advice = "Use http://, or let the server answer the function to anyone ('*')."
        raise DRPCUsageError(f"{name}: Thrift carries no token, to", address, (), advice)
    return _ThriftServer(parts.hostname, port, secure)


def _tls(name: str, ca: Any, certfile: Any, keyfile: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
        if certfile is not None:
            context.load_cert_chain(certfile, keyfile)
    except OSError as error:
        what = f"{name}: no certificate can be read of ca=, certfile=, keyfile= ({error})"
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


def _check_seconds(name: str, timeout: object) -> None:
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout < float("inf"):  # type: ignore[operator]
        what = f"{name}: the timeout is a number of seconds, found"
        raise DRPCUsageError(what, repr(timeout))
