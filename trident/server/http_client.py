"""A server as its clients see it, and how it is asked over HTTP."""

from __future__ import annotations

import json
import os
import ssl
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from trident.drpc.errors import (
    ArgumentsTooLargeError,
    DRPCAccessError,
    DRPCClosedError,
    DRPCElsewhereError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    MalformedRequestError,
    UnknownFunctionError,
)
from trident.server.timed_response import TimedResponse

T = TypeVar("T")
Ask = Callable[["Server", Any, float], Callable[[], T]]

_KEPT = 16
"""Idle connections to one server."""


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
            except (OSError, HTTPException):
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
