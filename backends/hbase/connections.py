"""Connections to HBase's Thrift gateway: lent for a call, kept by the process in between."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from trident.backends.hbase.errors import START, no_answer
from trident.backends.pool import Pool, closed_after_error
from trident.backends.sockets import CONNECT_SECONDS, connect, is_quiet
from trident.states.asking import Reading
from trident.states.errors import MissingDriverError

# The gateway closes a connection that was idle for a minute, perhaps while we write to it.
_IDLE = 45.0
_CALL = 1
"""Thrift's number for a message that is a call."""


@dataclass(frozen=True)
class Gateway:
    """The address of HBase's Thrift gateway, and which protocol it speaks; picklable."""

    host: str
    port: int
    timeout: float
    transport: str
    protocol: str

    def __str__(self) -> str:
        return f"hbase at {self.host}:{self.port}"

    def lend(self) -> AbstractContextManager[GatewayConnection]:
        """Lend a connection for the caller alone; it is dropped if a call fails."""
        return pool.lend(self)


class GatewayConnection:
    """An open connection to the gateway; its `client` has the calls, for one thread at a time."""

    def __init__(self, gateway: Gateway) -> None:
        thrift()  # a missing driver is reported before a missing server
        # The driver's own connections can't use IPv6, and have one time-out for everything.
        start = START.format(port=gateway.port)
        self._socket = connect(str(gateway), gateway.host, gateway.port, start)
        with closed_after_error(self):
            self.client = client_over(self._socket, gateway.transport, gateway.protocol)
            self._greet(gateway)

    def _greet(self, gateway: Gateway) -> None:
        """Wait briefly for a first answer: a gateway may accept connections and never answer."""
        patience = min(CONNECT_SECONDS, gateway.timeout)
        self._socket.settimeout(patience)
        try:
            await_answer(self.client)
        except TimeoutError:
            raise no_answer(str(gateway), patience) from None
        self._socket.settimeout(gateway.timeout)

    def is_quiet(self) -> bool:
        """Return whether the gateway has neither closed it nor sent late bytes."""
        return is_quiet(self._socket)

    def close(self) -> None:
        self._socket.close()


pool = Pool(GatewayConnection, GatewayConnection.is_quiet, _IDLE)
"""The idle connections of this process."""


def thrift() -> Any:
    """Return the module of HBase's structures: ``Mutation``, ``AlreadyExists`` and others."""
    try:
        import_module("happybase")  # which makes the other
        return import_module("Hbase_thrift")
    except ImportError as error:
        raise MissingDriverError("state in HBase", "hbase", str(error)) from None


def client_over(connection: socket.socket, transport: str, protocol: str) -> Any:
    """Return an object with the gateway's calls as methods; the caller closes the connection."""
    service = thrift().Hbase
    transports: Any = import_module("thriftpy2.transport")
    protocols: Any = import_module("thriftpy2.protocol")
    framed, compact = transport == "framed", protocol == "compact"
    framing = transports.TFramedTransport if framed else transports.TBufferedTransport
    encoding = protocols.TCompactProtocol if compact else protocols.TBinaryProtocol
    stream = framing(transports.TSocket(sock=connection))
    return import_module("thriftpy2.thrift").TClient(
        service, encoding(stream, decode_response=False)
    )


def reading_rows(
    client: Any, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes]
) -> Reading[list[Any]]:
    """Return what ``getRowsWithColumns`` of a client returns, as a reading."""
    call = "getRowsWithColumns"
    client._send(call, tableName=table, rows=rows, columns=columns, attributes={})
    yield
    found: list[Any] = client._recv(call)
    return found


def await_answer(client: Any) -> None:
    """Wait until the gateway answers which interface it has, or that it doesn't know the call."""
    service, protocol = thrift().Hbase, client._oprot
    # The driver doesn't know the call: another one without arguments stands in for it.
    protocol.write_message_begin("getThriftServerType", _CALL, 0)
    service.getTableNames_args().write(protocol)
    protocol.write_message_end()
    protocol.trans.flush()
    protocol.read_message_begin()
    service.getTableNames_result().read(protocol)
    protocol.read_message_end()
