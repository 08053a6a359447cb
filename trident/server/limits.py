"""What a server takes, so that no client costs it more than its share."""

from __future__ import annotations

from dataclasses import dataclass, fields

from trident.drpc.errors import DRPCUsageError


@dataclass(frozen=True, kw_only=True)
class DRPCLimits:
    """What a server takes.

    Parameters
    ----------
    args : int
        Bytes of a call's arguments, in UTF-8.
    keys : int
        Keys of states that one request asks for.
    head : int
        Bytes of the first line and the headers of an HTTP request.
    received : int
        Bytes of requests that have come in part, or wait for the one before them on their
        connection, of all connections together.
    untaken : int
        Bytes of answers that clients have not taken, of all connections together. Beyond it the
        connections that have waited longest are ended, so that one answer at most exceeds it.
    connections : int
        Connections at one time; more are closed at once.
    slow : float
        Seconds from the first byte of a request to its last, and for an answer to be taken.
    idle : float
        Seconds that a connection of HTTP may be without a request.
    thrift_idle : float or None
        Seconds that a connection of Thrift may be without a call. By default any number: Storm's
        clients connect once, and never again. The system asks whether a silent client is there.
    timeout : float
        Seconds that a call may take; a client may ask for less.

    Examples
    --------
    >>> DRPCLimits(args=10).idle
    60.0
    """

    args: int = 2**20
    keys: int = 10_000
    head: int = 2**16
    received: int = 64 * 2**20
    untaken: int = 64 * 2**20
    connections: int = 10_000
    slow: float = 10.0
    idle: float = 60.0
    thrift_idle: float | None = None
    timeout: float = 5.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None and each.default is None:
                continue
            kinds = (int,) if each.type == "int" else (int, float)
            if type(value) not in kinds or not 0 < value < float("inf"):
                what = f"DRPCLimits: {each.name} is a number above 0, found"
                raise DRPCUsageError(what, repr(value))
