"""The driver, imported when a map is first used: a Thrift client, and the structures it takes.

HBase's messages are happybase's, the client over them is of thriftpy2, and our own are the socket
and two calls. happybase's `Connection` knows no IPv6 and one time-out for connecting and answers,
and its `Table` neither checks and puts at the server's time nor reads in steps, so that other
stores could be asked meanwhile. Messages go through methods of thriftpy2 that have no public name:
pyproject.toml bounds its version.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trident.states.asking import Reading
from trident.states.errors import MissingDriverError

_CALL = 1
"""Thrift's number for a message that is a call."""


def thrift() -> Any:
    """Return the module of HBase's structures: ``Mutation``, ``AlreadyExists`` and others."""
    try:
        import_module("happybase")  # which makes the other
        return import_module("Hbase_thrift")
    except ImportError as error:
        raise MissingDriverError("state in HBase", "hbase", str(error)) from None


def client_over(connection: socket.socket, transport: str, protocol: str) -> Any:
    """Return an object with the gateway's calls as methods.

    The caller closes the connection.
    """
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
    """Return when the gateway has answered something, without asking HBase behind it.

    It is asked which of Thrift's interfaces it has; one that is too old for the question says so.
    """
    service, protocol = thrift().Hbase, client._oprot
    # The driver doesn't know the call: another one without arguments stands in for it.
    protocol.write_message_begin("getThriftServerType", _CALL, 0)
    service.getTableNames_args().write(protocol)
    protocol.write_message_end()
    protocol.trans.flush()
    protocol.read_message_begin()
    service.getTableNames_result().read(protocol)
    protocol.read_message_end()
