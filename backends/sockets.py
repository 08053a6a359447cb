"""Connections that no driver makes for us: opened within two seconds, or an error that says why."""

from __future__ import annotations

import select
import socket
from typing import Any

from trident.states.errors import StateUnavailableError

CONNECT_SECONDS = 2.0
"""How long to wait for a connection, so that a server out of reach is known within 3 s."""


def connect(server: str, host: str, port: int, start: str) -> socket.socket:
    """Connect to any address of a host; `start` is the advice where nothing listens."""
    check = "Check host, port and firewall: does a server run there, and is it overloaded?"
    try:
        connection = socket.create_connection((host, port), CONNECT_SECONDS)
    except ConnectionRefusedError:
        raise StateUnavailableError(server, "it refuses the connection", start) from None
    except TimeoutError:
        problem = f"no connection within {CONNECT_SECONDS:g} s"
        raise StateUnavailableError(server, problem, check) from None
    except socket.gaierror as error:
        problem = f"its host is unknown ({error.strerror})"
        raise StateUnavailableError(server, problem, "Check the host's name.") from None
    except OSError as error:
        raise StateUnavailableError(server, f"no connection ({error})", check) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def is_quiet(connection: Any) -> bool:
    """Return whether an idle connection has nothing to read: neither its end nor late bytes."""
    readable = select.poll()
    readable.register(connection, select.POLLIN)
    return not readable.poll(0)
