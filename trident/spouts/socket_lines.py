"""Lines that a server sends over a socket."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from trident.errors import SourceUnavailableError, TridentError, described
from trident.operations.interfaces import TridentCollector
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import IBatchSpout, SpoutKind
from trident.spouts.text_files import line_field
from trident.tuples.fields import Fields, FieldsLike

_LONGEST = 16 << 20
"""How many bytes a line may have: without a limit, one that never ends fills the memory."""


@dataclass(eq=False, repr=False)
class SocketLinesError(TridentError):
    """A connection broke, or did not send lines of text."""

    server: str
    """The server's host and port."""
    problem: str
    """What was found."""

    _template = "{server}: {problem}. The lines before are committed; a new run connects again."


class SocketLinesSpout(IBatchSpout):
    """Emits the lines that a server sends, for trying things out.

    Parameters
    ----------
    host : str
        The server's host.
    port : int
        Its port.
    field : Fields
        The name of the line's field.
    batch : int
        How many lines a batch holds at most; as many again are read ahead.

    Raises
    ------
    ValueError
        When `batch` is no whole number from 1, or `field` is not one field.

    Notes
    -----
    Lives on the driver. A socket can't be asked for a line again: lines that were read are lost if
    the process dies, so the stream is non-transactional. A failed attempt is emitted again
    unchanged. The stream ends when the server ends the connection. Lines are UTF-8, of 16 MiB at
    most. A wrong line, or a broken connection, is an error that comes after the lines before it.

    Examples
    --------
    >>> SocketLinesSpout("localhost", 9999).kind
    'non-transactional'
    """

    kind: ClassVar[SpoutKind] = "non-transactional"

    def __init__(
        self, host: str, port: int, field: FieldsLike = "line string", *, batch: int = 10_000
    ) -> None:
        if type(batch) is not int or batch < 1:
            raise ValueError(f"SocketLinesSpout: batch is above 0, found {described(batch)}")
        self._server = host, port
        self._fields = line_field("SocketLinesSpout", field)
        self._batch = batch
        self._changed = threading.Condition()
        self._listener: Callable[[], None] = lambda: None
        self._socket: socket.socket | None = None
        self._begin()

    def _begin(self) -> None:
        self._lines: deque[str] = deque()
        self._emitted: dict[int, list[str]] = {}
        self._problem: str | None = None
        self._ended = False

    @property
    def _name(self) -> str:
        return f"{self._server[0]}:{self._server[1]}"

    def open(self, conf: Mapping[str, Any], context: Any) -> None:
        try:
            self._socket = socket.create_connection(self._server, timeout=10)
        except OSError as error:
            raise SourceUnavailableError(
                self._name, f"no connection ({error})", "Start the server first."
            ) from error
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._begin()
        self._thread = threading.Thread(target=self._receive, args=(self._socket,), daemon=True)
        self._thread.start()

    def whenReady(self, listener: Callable[[], None]) -> bool:
        self._listener = listener
        return True

    def isReady(self, batchId: int) -> bool:
        with self._changed:
            return bool(self._lines) or batchId in self._emitted or self._problem is not None

    def lag(self, txid: int) -> int:
        with self._changed:
            return len(self._lines) + sum(map(len, self._emitted.values()))

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        assert isinstance(collector, SpoutCollector)
        with self._changed:
            if batchId not in self._emitted:
                if self._problem is not None and not self._lines:
                    raise SocketLinesError(self._name, self._problem)
                count = min(len(self._lines), self._batch)
                self._emitted[batchId] = [self._lines.popleft() for _ in range(count)]
                self._changed.notify_all()
            lines = self._emitted[batchId]
        collector.emitColumns({self._fields.names[0]: lines})

    def ack(self, batchId: int) -> None:
        self._emitted.pop(batchId, None)

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._socket is not None:
            with suppress(OSError):  # the reader closes it at its end
                self._socket.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._socket.close()
            self._socket = None

    def getOutputFields(self) -> Fields:
        return self._fields

    def _receive(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as lines:
                while line := lines.readline(_LONGEST):
                    if len(line) == _LONGEST and not line.endswith(b"\n"):
                        raise ValueError(f"a line has {_LONGEST:,} bytes and no end")
                    if not self._take(line.decode().removesuffix("\n").removesuffix("\r")):
                        return
        except (OSError, ValueError) as error:
            with self._changed:
                if not self._ended:
                    self._problem = str(error)
        self._listener()

    def _take(self, line: str) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._lines) < self._batch or self._ended)
            self._lines.append(line)
            ended = self._ended
        self._listener()
        return not ended
