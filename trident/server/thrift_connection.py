"""Thrift, framed: from bytes to calls, and from results to bytes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping

from trident.drpc.errors import (
    ArgumentsTooLargeError,
    DRPCAccessError,
    DRPCQueueFullError,
    MalformedRequestError,
)
from trident.server.answering import AnsweringConnection
from trident.server.connection import NEVER, Connections
from trident.server.failure_log import log_failure
from trident.server.functions import Functions
from trident.server.invocations import Invocations
from trident.wire.errors import error_json, public_error
from trident.wire.thrift_binary import (
    BODY,
    CALL,
    EXCEPTION,
    KNOWN_IDS,
    REPLY,
    REQUEST_ID,
    STATUS,
    Fields,
    Message,
    ThriftError,
    framed,
    message_bytes,
    read_head,
    read_message,
)

_UNKNOWN_METHOD, _PROTOCOL_ERROR = 1, 7
_AROUND_ARGS = 2**16
"""Bytes of a frame besides the arguments."""
_KEPT_BESIDES = 500
"""Bytes of memory for a call that waits for the one before it, besides its own."""
_SUCCESS = 0
_KEPT_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""So a client whose machine is off is found out within two minutes."""

Method = Callable[[Fields], Awaitable[Fields]]
"""From the fields of the arguments to those of the result."""


class ThriftConnection(AnsweringConnection):
    """A connection that speaks Thrift's binary protocol in frames."""

    def __init__(self, connections: Connections, methods: Mapping[str, Method]) -> None:
        super().__init__(connections, connections.limits.thrift_idle or NEVER)
        self._methods = methods
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._join(transport, self._idle):  # its first call may come at any time
            transport.close()
            return
        wire = transport.get_extra_info("socket")
        if wire is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEPT_ALIVE.items():
                if hasattr(socket, name):
                    wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def connection_lost(self, error: Exception | None) -> None:
        while self.pipeline:
            self._next()
        super().connection_lost(error)

    def _take(self, data: bytes) -> None:
        """Put each call that is complete behind those that wait for their turn."""
        self._buffer += data
        at = 0
        while len(self._buffer) >= at + 4:
            size = int.from_bytes(self._buffer[at : at + 4], "big", signed=True)
            if not 0 <= size <= self.limits.args + _AROUND_ARGS:
                self._refuse(at, ArgumentsTooLargeError("the call", self.limits.args))
                return
            if len(self._buffer) < at + 4 + size:
                break
            self.pipeline.appendleft(bytes(self._buffer[at + 4 : at + 4 + size]))
            self.among.received += size + _KEPT_BESIDES
            at += 4 + size
        del self._buffer[:at]
        self._begun = bool(self._buffer)
        if not self.set_received(len(self._buffer)):
            self._refuse(0, DRPCQueueFullError("the server", len(self.among)))

    def _next(self) -> bytes:
        """Take out the call whose turn it is."""
        request: bytes = self.pipeline.pop()
        self.among.received -= len(request) + _KEPT_BESIDES
        return request

    def _refuse(self, at: int, error: Exception) -> None:
        """Answer a call that has come in part, read no more, and end when all is answered."""
        try:
            message = read_head(bytes(self._buffer[at + 4 : at + 300]))
            self._last = _reply(message, _failure(message.name, error))
        except ThriftError:
            pass
        self._ends = True
        self._begun = False
        self.set_received(0)
        self._buffer.clear()

    def _answer_next(self) -> None:
        self._task = self.loop.create_task(self._answer(self._next()))

    async def _answer(self, request: bytes) -> None:
        answer = await self._answer_to(request)
        self._task = None
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.look()

    async def _answer_to(self, request: bytes) -> bytes:
        """Return the answer to a call; never raises."""
        try:
            message = read_message(request)
        except ThriftError as problem:
            self._ends = True
            return _exception(Message("", CALL, 0, {}), _PROTOCOL_ERROR, str(problem))
        method = self._methods.get(message.name)
        if message.kind != CALL or method is None:
            known = ", ".join(self._methods)
            text = f"no call {message.name!r:.100} here; there are: {known}"
            return _exception(message, _UNKNOWN_METHOD, text)
        try:
            result = await method(message.fields)
        except Exception as error:
            result = _failure(message.name, error)
        return _reply(message, result)


def calls(functions: Functions) -> Mapping[str, Method]:
    """Storm's ``DistributedRPC``."""

    async def execute(fields: Fields) -> Fields:
        function, args = _texts(fields, 2)
        # An id that can't be read is refused: the request would be applied each time it comes.
        request_id = fields[REQUEST_ID] or "" if REQUEST_ID in fields else None
        return {_SUCCESS: await functions.execute(function, args, request_id=request_id)}

    return {"execute": execute}


def invocations(functions: Functions, kept: Invocations) -> Mapping[str, Method]:
    """Storm's ``DistributedRPCInvocations``."""

    async def fetch(fields: Fields) -> Fields:
        (function,) = _texts(fields, 1)
        functions.access.check(function, None)
        args, id = kept.fetch(function)
        return {_SUCCESS: {1: args, 2: id}}

    async def result(fields: Fields) -> Fields:
        kept.result(*_texts(fields, 2))
        return {}

    async def fail(fields: Fields) -> Fields:
        (id,) = _texts(fields, 1)
        error = fields.get(2)
        message = error.get(1) if isinstance(error, dict) else None
        kept.fail(id, *([message] if isinstance(message, str) else []))
        return {}

    return {"fetchRequest": fetch, "result": result, "failRequest": fail, "failRequestV2": fail}


def _texts(fields: Fields, number: int) -> list[str]:
    """Return the first arguments, which have to be strings."""
    found = [fields.get(index + 1) for index in range(number)]
    if not all(isinstance(each, str) for each in found):
        raise MalformedRequestError("an argument is missing, or is no UTF-8")
    return [str(each) for each in found]


def _failure(method: str, error: Exception) -> Fields:
    """Return the fields of a result with an exception that Storm's interface declares."""
    if isinstance(error, DRPCAccessError):
        return {2 if method == "execute" else 1: {1: str(error)}}
    log_failure(error)
    public = public_error(error)
    if method == "execute":
        body = error_json(public.error, public.message, **public.details)
        more = {STATUS: public.status, BODY: body.decode()}
        return {1: {1: public.message, 2: int(public.type), **more}}
    return {1: {1: public.message}}


def _reply(message: Message, result: Fields) -> bytes:
    return framed(message_bytes(message.name, REPLY, message.seqid, result))


def _exception(message: Message, kind: int, text: str) -> bytes:
    """Return Thrift's own exception, for a call that no service declares."""
    fields = {1: text, 2: kind, KNOWN_IDS: 1}
    return framed(message_bytes(message.name, EXCEPTION, message.seqid, fields))
