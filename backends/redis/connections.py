"""Connections to Redis servers, lent for a call; no command is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from trident.backends.pool import Pool, closed_after_error
from trident.backends.redis.errors import explain
from trident.backends.sockets import CONNECT_SECONDS
from trident.states.asking import Reading, finish_read
from trident.states.errors import MissingDriverError

Address = tuple[str, int]
Command = Sequence[bytes | str | int]
Make = Callable[[], Command]

_AHEAD = 4
"""How many commands a server is sent before it has answered the first."""


@dataclass(frozen=True)
class ConnectionOptions:
    """How to connect to each server of a state, and how long to wait; pickles, no secret in its
    repr."""

    db: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    timeout: float = 5.0
    connect: float = CONNECT_SECONDS

    def arguments(self) -> dict[str, Any]:
        """Return the parameters of the driver's connections."""
        tls = {
            "ssl_ca_certs": self.tls_ca,
            "ssl_certfile": self.tls_cert,
            "ssl_keyfile": self.tls_key,
        }
        return {
            "db": self.db,
            "username": self.user,
            "password": self.password,
            "socket_timeout": self.timeout,
            "socket_connect_timeout": self.connect,
            "socket_read_size": 2**16,
            # The newer protocol's handshake costs a round trip, and its types aren't needed.
            "protocol": 2,
            **(tls if self.tls else {}),
        }


class _Destination(NamedTuple):
    address: Address
    options: ConnectionOptions


class Wire:
    """An open connection; its errors are explained, and repeat no secret."""

    def __init__(self, destination: _Destination) -> None:
        try:
            from redis import Connection, SSLConnection
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise MissingDriverError("state in Redis", "redis", str(error)) from None
        self.address, options = destination
        self._secret = options.password
        kind: Any = SSLConnection if options.tls else Connection
        self._connection = kind(
            host=self.address[0],
            port=self.address[1],
            # By itself the driver would repeat writes whose answers didn't come.
            retry=Retry(NoBackoff(), 0),
            **options.arguments(),
        )
        with closed_after_error(self):
            try:
                self._connection.connect()
            except Exception as error:
                # Not chained: a server's answer to a login may repeat the password.
                raise explain(error, *self.address, self._secret, options.user) from None

    def is_quiet(self) -> bool:
        """Return whether the server has neither closed it nor sent late bytes."""
        return not self._connection.can_read()

    def close(self) -> None:
        self._connection.disconnect()

    def pack(self, *commands: Command) -> bytes:
        """Return commands as they are sent."""
        try:
            from hiredis import pack_command
        except ImportError:  # the driver works without, and slower
            pack = self._connection.pack_command
            return b"".join([part for command in commands for part in pack(*command)])
        # The driver hands over to the same, after it has looked at each of thousands of words.
        return b"".join([pack_command(cast(Any, tuple(command))) for command in commands])

    def send(self, packed: bytes) -> None:
        """Send what was packed; whoever does must read as many answers."""
        try:
            self._connection.send_packed_command((packed,))
        except Exception as error:
            raise self._explain(error) from None

    def read(self) -> Any:
        """Return the next answer, or raise what it means, after which this can't be used."""
        try:
            return self._connection.read_response()
        except Exception as error:
            raise self._explain(error) from None

    def read_executed(self) -> bool:
        """Read the answer to an EXEC: whether the transaction took place."""
        answers = self.read()
        if answers is None:
            return False
        for answer in answers:
            if isinstance(answer, Exception):
                raise self._explain(answer) from answer
        return True

    def ask(self, *commands: Command) -> list[Any]:
        """Send a few short commands at once and return their answers."""
        self.send(self.pack(*commands))
        return [self.read() for _ in commands]

    def _explain(self, error: Exception) -> Exception:
        return explain(error, *self.address, self._secret)


pool = Pool(Wire, Wire.is_quiet)
"""The idle connections of this process."""


def connected(address: Address, options: ConnectionOptions) -> AbstractContextManager[Wire]:
    """Lend a connection of this process; after an error it is closed, not given back."""
    return pool.lend(_Destination(address, options))


def exchange(
    wires: Sequence[Wire], commands: Sequence[Iterable[Command]]
) -> Sequence[Sequence[Any]]:
    """Send each server its commands, all servers at once, and return their answers in order."""
    return finish_read(exchanging(wires, commands))


def exchanging(
    wires: Sequence[Wire], commands: Sequence[Iterable[Command]]
) -> Reading[Sequence[Sequence[Any]]]:
    """Do the same as a reading, which yields before the first answer.

    Commands are made while servers work.
    """
    answers: list[list[Any]] = [[] for _ in wires]
    waiting = [0] * len(wires)
    sources = [iter(source) for source in commands]
    sending = list(range(len(wires)))
    while sending:
        for number in list(sending):
            wire, command = wires[number], next(sources[number], None)
            if command is None:
                sending.remove(number)
                continue
            wire.send(wire.pack(command))
            waiting[number] += 1
            if waiting[number] > _AHEAD:
                if not any(answers):  # nothing was waited for before
                    yield
                answers[number].append(wire.read())
                waiting[number] -= 1
    if not any(answers):
        yield
    for wire, answered, number in zip(wires, answers, waiting, strict=True):
        answered += [wire.read() for _ in range(number)]
    return answers
