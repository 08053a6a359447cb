"""A client of DRPC servers: this library's, and Storm's."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http.client import HTTPException
from secrets import token_hex
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from trident.drpc.errors import (
    DRPCClosedError,
    DRPCElsewhereError,
    DRPCError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    DRPCUsageError,
    MalformedRequestError,
    NoServerError,
)
from trident.drpc.request_id import check_request_id
from trident.server.http_client import Ask, Asked, HTTPServer, Server, T

_PORTS = {"http": 3774, "https": 3774, "thrift": 3772, "thrifts": 3772}
_THREADS = 32
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
        given: Sequence[Any] = servers
        for each in given:
            if not isinstance(each, str):
                advice = "A server is one text, as in 'localhost:3774'."
                raise DRPCUsageError(f"{name}: no server is", repr(each), (), advice)
        _check_seconds(name, timeout)
        if token is not None and not token.isprintable():
            raise DRPCUsageError(f"{name}: a token is one line of text that can be shown")
        self._timeout = timeout
        tls = _tls(name, ca, certfile, keyfile) if any("s://" in each for each in servers) else None
        self._servers = [_server(name, each, schemes, token, tls) for each in servers]
        self._first = 0
        self._threads: tuple[int, ThreadPoolExecutor] | None = None  # with the process they are of

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
            except (OSError, HTTPException, UnicodeError) as error:
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
        """End the idle connections and threads; may be repeated."""
        for server in self._servers:
            server.close()
        threads, self._threads = self._threads, None
        if threads is not None and threads[0] == os.getpid():
            threads[1].shutdown(wait=False)

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
        """Call a function without blocking the event loop; as :meth:`execute`, in a thread of the
        client's own, of which there are 32."""
        began = monotonic()
        seconds = self._timeout if timeout is None else timeout
        _check_seconds(type(self).__name__, seconds)

        def execute() -> str:
            left = seconds - (monotonic() - began)  # it may have waited for a thread
            if left <= 0:
                raise DRPCTimeoutError(function, seconds - left, 0)
            return self.execute(function, args, left, request_id=request_id)

        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._executor(), run, execute)

    def _executor(self) -> ThreadPoolExecutor:
        """The client's threads, not those of the application."""
        if self._threads is None or self._threads[0] != os.getpid():
            self._threads = os.getpid(), ThreadPoolExecutor(_THREADS, "trident-drpc-client")
        return self._threads[1]


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
    return _thrift_server(name)(parts.hostname, port, secure)


def _thrift_server(name: str) -> Callable[[str, int, Any], Server]:
    """What asks over Thrift, whose library is optional."""
    try:
        from trident.server.thrift_client import ThriftServer
    except ImportError as error:
        what = f"{name}: Thrift needs a package that is not installed ({error})"
        advice = 'Install it: pip install "trident-spark[drpc]"; or ask by http://.'
        raise DRPCUsageError(what, "", (), advice) from error
    return ThriftServer


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
