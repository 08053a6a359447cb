"""How a server is asked over Thrift: this library's, and Storm's."""

from __future__ import annotations

import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

from trident.drpc.errors import (
    DRPCAccessError,
    DRPCClosedError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCTimeoutError,
)
from trident.server.http_client import Asked, Server, http_answer
from trident.server.outcomes import ExceptionType
from trident.server.thrift_binary import (
    BODY,
    CALL,
    EXCEPTION,
    REQUEST_ID,
    STATUS,
    framed,
    read_message,
    written_message,
)


class ThriftServer(Server):
    """A server of Thrift."""

    def connect(self, seconds: float) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            return self.tls.wrap_socket(connection, server_hostname=self.host)
        return connection

    def execute(self, connection: socket.socket, asked: Asked, seconds: float) -> Callable[[], str]:
        until = monotonic() + seconds
        connection.settimeout(seconds)
        fields = {1: asked.function, 2: asked.args, REQUEST_ID: asked.id}
        connection.sendall(framed(written_message("execute", CALL, 0, fields)))
        size = int.from_bytes(_received(connection, 4, until), "big")
        reply = read_message(_received(connection, size, until))
        return lambda: _answer(asked.function, asked.args, reply.kind, dict(reply.fields))


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


def _answer(function: str, args: str, kind: int, fields: dict[int, Any]) -> str:
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
