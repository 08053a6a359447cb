"""What connections to Redis servers have in common: login, TLS and time-outs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CONNECT_SECONDS = 2.0
"""How long to wait for a connection, so that a server out of reach is known within 3 s."""


@dataclass(frozen=True)
class ConnectionOptions:
    """How to connect to each server of a state; picklable, no secret in its repr.

    `timeout` is for an answer, to the login too; `connect` for a connection.
    """

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
