"""A client of DRPC servers: this library's, and Storm's."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from secrets import token_hex
from time import monotonic

from trident.client.client import PORTS, Client
from trident.client.server import FunctionRequest, PerProcess, Server, Within
from trident.drpc.calls import check_request_id, check_seconds
from trident.drpc.errors import DRPCTimeoutError, DRPCUsageError, MalformedRequestError

_THREADS = 32


class DRPCClient(Client):
    """Calls functions of DRPC servers; where one can't answer, the next one is asked.

    A request has an id, by which this library's servers apply it once, however often it comes, and
    answer queries as often. So a call whose answer was lost is repeated, at the next server too.
    Storm's servers would run the function again: there it is an `AnswerLostError`. Before its first
    call each server is asked which kind it is. The server that answered last is asked first. May be
    called by any number of threads: each call has a connection for itself while it lasts.

    Parameters
    ----------
    *servers : str
        ``"host:port"`` or ``"http://host:port"``, ``"https://…"``, and of Thrift
        ``"thrift://host:port"``, or ``"thrifts://…"`` over TLS; the ports are by default those of
        Storm, 3774 and 3772.
    timeout : float
        Seconds that a call takes at most, with all servers that it asks.
    token : str, optional
        The caller's; over HTTP only.
    ca : path, optional
        PEM file of who signs the servers' certificates; by default those of the system.
    certfile, keyfile : path, optional
        PEM files of the client's own certificate and its key.

    Raises
    ------
    DRPCUsageError
        For an invalid address.

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

    _schemes = PORTS
    _repeatable = False

    @cached_property
    def _threads(self) -> PerProcess[ThreadPoolExecutor]:
        return PerProcess(lambda: ThreadPoolExecutor(_THREADS, "trident-drpc-client"))

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
            The request's, for a caller that repeats it; see `LocalDRPC.execute`. By default a new
            one for each call.

        Returns
        -------
        str
            JSON, as `LocalDRPC.execute` returns.

        Raises
        ------
        NoServerError
            When no server could be reached.
        AnswerLostError
            When the call was sent, and its answer was lost.
        DRPCError
            What `LocalDRPC.execute` raises, from the last server that was asked.
        """
        _check_text(function, args)
        check_request_id(request_id)
        asked = FunctionRequest(function, args, request_id or token_hex(16))

        def ask(server: Server, within: Within) -> str:
            return server.execute(asked, within)

        return self._ask(function, ask, timeout)

    async def execute_async(
        self,
        function: str,
        args: str = "",
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Call a function without blocking the event loop; as :meth:`execute`, in one of the
        client's 32 threads."""
        began = monotonic()
        seconds = self._timeout if timeout is None else timeout
        check_seconds(type(self).__name__, seconds)

        def execute() -> str:
            elapsed = monotonic() - began  # it may have waited for a thread
            if elapsed >= seconds:
                raise DRPCTimeoutError(function, elapsed, 0)
            return self.execute(function, args, seconds - elapsed, request_id=request_id)

        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._threads.get(), run, execute)

    def close(self) -> None:
        """End the idle connections and threads; may be repeated."""
        super().close()
        threads = self._threads.pop()
        if threads is not None:
            threads.shutdown(wait=False)


def _check_text(function: str, args: str) -> None:
    for what, text in (("function", function), ("arguments", args)):
        if not isinstance(text, str):
            raise DRPCUsageError(f"execute: the {what} must be a str, found", type(text).__name__)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MalformedRequestError(f"the {what} hold a character that has no UTF-8") from error
