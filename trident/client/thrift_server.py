"""How a server is asked over Thrift: this library's, and Storm's."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from typing import Any

from urllib3.util import wait_for_read

from trident.client.server import FunctionRequest, LostError, PerProcess, Server, Within
from trident.drpc.errors import DRPCAccessError, DRPCError, DRPCInternalError
from trident.wire.errors import read_error, read_exception
from trident.wire.thrift_binary import (
    BODY,
    CALL,
    EXCEPTION,
    KNOWN_IDS,
    REQUEST_ID,
    STATUS,
    Fields,
    Message,
    framed,
    message_bytes,
    read_message,
)

_KEPT = 64
"""Idle connections to one server."""


class ThriftServer(Server):
    """A server of Thrift."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self._place = host, port
        self._tls = tls
        self._idle: PerProcess[deque[socket.socket]] = PerProcess(deque)

    def _ask_for_ids(self, within: Within) -> bool:
        return KNOWN_IDS in self._call("knowsIds", {}, within).fields  # which no server has

    def _execute(self, asked: FunctionRequest, within: Within) -> str:
        fields = {1: asked.function, 2: asked.args, REQUEST_ID: asked.id}
        reply = self._call("execute", fields, within)
        answer = reply.fields.get(0)
        if reply.kind != EXCEPTION and isinstance(answer, str):
            return answer
        raise _error(asked, reply)

    def _call(self, name: str, fields: Fields, within: Within) -> Message:
        idle = self._idle.get()
        connection = self._connection(idle, within)
        try:
            connection.settimeout(within.remaining())
            connection.sendall(framed(message_bytes(name, CALL, 0, fields)))
            size = int.from_bytes(_receive(connection, 4, within), "big")
            reply = read_message(_receive(connection, size, within))
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise LostError(str(error)) from error
            raise
        if len(idle) < _KEPT:
            idle.append(connection)
        else:
            connection.close()
        return reply

    def close(self) -> None:
        for connection in self._idle.pop() or ():
            connection.close()

    def _connection(self, idle: deque[socket.socket], within: Within) -> socket.socket:
        """An idle connection that its server has not ended, or a new one."""
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread has taken it
                break
            if not wait_for_read(connection, timeout=0):
                return connection
            connection.close()
        try:
            connection = socket.create_connection(self._place, within.connecting)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                return self._tls.wrap_socket(connection, server_hostname=self._place[0])
        except TimeoutError as error:
            raise ConnectionError(f"no connection within {within.connecting:.2f} s") from error
        return connection


def _receive(connection: socket.socket, size: int, within: Within) -> bytes:
    parts = []
    while size:
        connection.settimeout(within.remaining())
        part = connection.recv(min(size, 2**16))
        if not part:
            raise ConnectionResetError("the server has ended the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _error(asked: FunctionRequest, reply: Message) -> DRPCError:
    """Return the error that a reply stands for."""
    function, args, fields = asked.function, asked.args, reply.fields
    if reply.kind == EXCEPTION:
        return DRPCInternalError(function, args, str(fields.get(1, "no reason was given")))
    if isinstance(refused := fields.get(2), dict):
        return DRPCAccessError(function, str(refused.get(1)))
    given = fields.get(1)
    failed: dict[int, Any] = given if isinstance(given, dict) else {}
    status, body = failed.get(STATUS), failed.get(BODY)
    if isinstance(status, int) and isinstance(body, str):
        return read_error(function, args, status, body.encode())
    return read_exception(function, args, failed.get(2), str(failed.get(1, "no reason was given")))
