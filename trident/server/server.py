"""A server of DRPC, in a thread of its own."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from trident.drpc.errors import DRPCUsageError
from trident.server.access import Access, OtherSites, is_this_machine
from trident.server.connection import Connections, Handshake, ServerConnection
from trident.server.invocations import Invocations
from trident.server.limits import DRPCLimits

if TYPE_CHECKING:
    from trident.server.application import Application
    from trident.server.serving import Serving

HTTP_PORT = 3774
THRIFT_PORT = 3772
DRAIN = 5.0
_BACKLOG = 1_024
_ACCEPTED = 16
"""How many connections are accepted in a row, before the open ones are answered again."""
_TURNS = 4
"""Turns of the loop from accepting a connection until it is open: its task begins, the connection
is made, the task resumes."""
_logger = logging.getLogger("trident")


class DRPCServer:
    """Answers queries over HTTP, and over Thrift, as Storm's DRPC server, and shows states.

    It listens from :meth:`start` on, in a thread of its own; as a context manager until the end
    of the block.

    Parameters
    ----------
    served : Run, TridentTopology, LocalDRPC, or several
        Whose functions are answered, and whose states are shown. A topology is not started: its
        states are opened for reading, wherever its run is; they have to be in stores that this
        process reaches.
    host : str
        Where to listen; by default only this machine can connect. Without tokens pages of other
        sites are refused, and elsewhere than on this machine that is a warning in the log.
    port : int or None
        Of HTTP; 0 takes a free one, None leaves HTTP out.
    thrift_port : int or None
        Of Thrift's ``DistributedRPC``, for Storm's clients; Storm's is 3772.
    invocations_port : int or None
        Of Thrift's ``DistributedRPCInvocations``, by which other processes fetch the requests of
        functions that no topology here has, and return their results; Storm's is 3773. With
        tokens it needs a network of its own, as Storm's plain transport carries none.
    tokens : mapping of str to str, optional
        The token of each user. With any, a call needs ``Authorization: Bearer`` and a token.
    allow : mapping of str to users, optional
        The users that may call each function; see `Access`. A state is named ``state/count``; the
        figures are named ``metrics``, and the page ``page``.
    certfile, keyfile : path, optional
        PEM files of the certificate and its key: everything is TLS then.
    client_ca : path, optional
        PEM file of who signs the certificates that clients must have.
    names : collection of str
        The host names by which HTTP may be asked, besides ``localhost`` and addresses. Without any
        that is every name, but for a server on this machine only that has no tokens.
    limits : DRPCLimits
        Limits for clients.

    Raises
    ------
    DRPCUsageError
        For a port that is taken or out of range, files without a certificate, states in the memory
        of another process, or an object that can't be served.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> from trident import TridentTopology
    >>> topology = TridentTopology()
    >>> _ = topology.newDRPCStream("upper").map(str.upper, "text")
    >>> with DRPCServer(topology, port=0) as server:
    ...     urlopen(f"http://127.0.0.1:{server.port}/drpc/upper/cat").read()
    b'[["CAT"]]'
    """

    def __init__(
        self,
        served: Any,
        host: str = "127.0.0.1",
        port: int | None = HTTP_PORT,
        *,
        thrift_port: int | None = None,
        invocations_port: int | None = None,
        tokens: Mapping[str, str] | None = None,
        allow: Mapping[str, Collection[str]] | None = None,
        certfile: str | os.PathLike[str] | None = None,
        keyfile: str | os.PathLike[str] | None = None,
        client_ca: str | os.PathLike[str] | None = None,
        names: Collection[str] = (),
        limits: DRPCLimits | None = None,
    ) -> None:
        self.host = host
        self.port = _check_port("port", port)
        self.thrift_port = _check_port("thrift_port", thrift_port)
        self.invocations_port = _check_port("invocations_port", invocations_port)
        if {self.port, self.thrift_port, self.invocations_port} == {None}:
            advice = "Give port= or thrift_port=."
            raise DRPCUsageError("DRPCServer: it would listen nowhere", "", (), advice)
        self._http_protocol = _optional("http_protocol").http_protocol
        self._tls = _tls_context(certfile, keyfile, client_ca)
        limits = _limit_to_files(limits or DRPCLimits())
        access = Access(tokens, allow)
        self._invocations = Invocations()
        self._serving: Serving = _optional("serving").Serving(
            served, access, limits, self._invocations
        )
        self.functions = self._serving.functions
        if isinstance(names, str):
            raise DRPCUsageError("DRPCServer: names= is a list of host names, found", names)
        self._open_to_all = not tokens and not is_this_machine(host)
        any_name = not names and (bool(tokens) or self._open_to_all)
        others = OtherSites(names, any_name=any_name, any_site=bool(tokens))
        self.application: Application = _optional("application").Application(
            self._serving.routes, limits.args, others.problem
        )
        self.connections = Connections(limits)
        self._drain = DRAIN
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: Thread | None = None
        self._ended = Event()

    @property
    def url(self) -> str:
        """Where HTTP is answered."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def start(self) -> Self:
        """Listen; returns when clients can connect."""
        if self._thread is not None:
            raise DRPCUsageError("start: the server has been started already")
        listening: Future[None] = Future()
        self._thread = Thread(
            target=self._run, args=(listening,), name="trident-serve", daemon=True
        )
        self._thread.start()
        if (error := listening.exception()) is not None:
            self.stop()
            raise error
        if self._open_to_all:
            text = "everybody who reaches %s may call this server's functions and read its states. "
            advice = "Give it tokens=, or a network of its own."
            _logger.warning(text + advice, self.host)
        return self

    def stop(self, drain: float = DRAIN) -> None:
        """Take no more calls, answer those that have come, `drain` seconds at most, and end; may be
        repeated."""
        self.functions.close()
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._drain = drain
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._serving.close(drain)
        self._ended.set()

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait until the server is stopped, `timeout` seconds at most; whether it is."""
        return self._ended.wait(timeout)

    def __enter__(self) -> Self:
        return self if self._thread is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, listening: Future[None]) -> None:
        try:
            asyncio.run(self._serve(listening))
        except BaseException as error:
            if listening.done():
                raise
            listening.set_exception(error)

    async def _serve(self, listening: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        servers: list[asyncio.Server] = []
        try:
            for name, protocol in self._protocols():
                servers.append(await self._listen(name, protocol))
        except BaseException:
            for server in servers:
                server.close()
            raise
        sweeping = asyncio.create_task(self.connections.sweep())
        listening.set_result(None)
        await self._stop.wait()
        await self._close(servers)
        self._invocations.close()
        await self.connections.close(self._drain)
        sweeping.cancel()

    async def _close(self, servers: Iterable[asyncio.Server]) -> None:
        """Accept no more connections.

        `asyncio.Server.close` alone would never close the sockets that have been accepted and are
        not yet connections.
        """
        assert self._loop is not None
        for server in servers:
            for each in server.sockets:
                self._loop.remove_reader(each.fileno())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        for server in servers:
            server.close()

    def _protocols(self) -> Iterable[tuple[str, Callable[[], ServerConnection]]]:
        """The ports to listen on, each with what makes its connections."""
        if self.port is not None:
            yield "port", self._http_protocol(self.connections, self.application)
        if self.thrift_port is not None:
            thrift = _optional("thrift_connection")
            methods = thrift.calls(self.functions)
            yield "thrift_port", lambda: thrift.ThriftConnection(self.connections, methods)
        if self.invocations_port is not None:
            thrift = _optional("thrift_connection")
            others = thrift.invocations(self.functions, self._invocations)
            yield "invocations_port", lambda: thrift.ThriftConnection(self.connections, others)

    async def _listen(self, name: str, protocol: Callable[[], ServerConnection]) -> asyncio.Server:
        assert self._loop is not None
        port = getattr(self, name)
        factory: Callable[[], asyncio.Protocol] = protocol
        if self._tls is not None:
            factory = partial(Handshake, self.connections, self._tls, protocol)
        try:
            server = await self._loop.create_server(factory, self.host, port, backlog=_ACCEPTED)
        except (OSError, UnicodeError) as error:  # UnicodeError: of a name that no host can have
            taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            problem = "is taken" if taken else f"can't be had ({error})"
            advice = f"Give another {name}=, or 0 for a free one."
            what = f"DRPCServer: {self.host}:{port} {problem}"
            raise DRPCUsageError(what, "", (), advice) from error
        for each in server.sockets:
            with socket.socket(fileno=os.dup(each.fileno())) as listening:
                listening.listen(_BACKLOG)
        setattr(self, name, server.sockets[0].getsockname()[1])
        return server


def _optional(module: str) -> Any:
    """Import a module beside this one that needs optional packages."""
    try:
        return import_module(f"trident.server.{module}")
    except ImportError as error:
        what = f"DRPCServer: it needs a package that is not installed ({error})"
        advice = 'Install it: pip install "trident-spark[drpc]".'
        raise DRPCUsageError(what, "", (), advice) from error


def _check_port(name: str, port: int | None) -> int | None:
    if port is None or (type(port) is int and 0 <= port < 2**16):
        return port
    raise DRPCUsageError(f"DRPCServer: {name} is a number from 0 to 65535, or None; found {port!r}")


def _tls_context(certfile: Any, keyfile: Any, client_ca: Any) -> ssl.SSLContext | None:
    if certfile is None:
        if keyfile is not None or client_ca is not None:
            raise DRPCUsageError("DRPCServer: for TLS give certfile= too")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certfile, keyfile)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # which includes ssl.SSLError
        what = f"DRPCServer: no certificate can be read of certfile=, keyfile= ({error}):"
        raise DRPCUsageError(what, str(certfile), (), "Both are PEM files.") from error
    return context


def _limit_to_files(limits: DRPCLimits) -> DRPCLimits:
    """The same limits, with no more connections than this process may have files."""
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except ImportError:
        return limits
    if soft == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=min(limits.connections, max(16, soft - 128)))
