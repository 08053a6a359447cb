"""Where the one server is that takes writes: at a fixed address, or where Sentinels say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trident.backends.redis.access import Access
from trident.backends.redis.connections import Address, connected
from trident.states.errors import StateUnavailableError


class Place(Protocol):
    """How one server is found; picklable."""

    @property
    def where(self) -> str:
        """How errors name it."""

    def find(self) -> Address:
        """Return its address as of now."""


@dataclass(frozen=True)
class FixedPlace:
    """A server that stays where it is.

    Parameters
    ----------
    address : tuple of str and int
        Its host and port.
    """

    address: Address

    @property
    def where(self) -> str:
        """``redis at host:port``."""
        return f"redis at {shown([self.address])}"

    def find(self) -> Address:
        """Return the address."""
        return self.address


@dataclass(frozen=True)
class SentinelPlace:
    """The master of a service, as the first Sentinel that answers knows it.

    Parameters
    ----------
    service : str
        The service's name.
    sentinels : tuple of (str, int)
        Their hosts and ports.
    access : Access
        To the Sentinels.
    """

    service: str
    sentinels: tuple[Address, ...]
    access: Access

    @property
    def where(self) -> str:
        """The service and its Sentinels."""
        return f"redis service {self.service!r} of the sentinels {shown(self.sentinels)}"

    def find(self) -> Address:
        """Ask the Sentinels, in their order.

        Raises
        ------
        StateUnavailableError
            When none answers, or none knows the service.
        """
        problems = []
        for sentinel in self.sentinels:
            try:
                with connected(sentinel, self.access) as wire:
                    [found] = wire.ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service))
            except StateUnavailableError as error:
                problems.append(f"{error.args[0]}: {error.args[1]}")
                continue
            if found is not None:
                host, port = found
                return host.decode(), int(port)
            problems.append(f"redis at {sentinel[0]}:{sentinel[1]}: it watches no such service")
        raise StateUnavailableError(
            self.where,
            f"its master is not to be found ({'; '.join(problems)})",
            "Check the name of the service, and the addresses: redis-cli -p 26379 sentinel "
            "masters. Start one: redis-sentinel /etc/redis/sentinel.conf (Debian: apt-get install "
            "redis-sentinel).",
        )


def shown(addresses: Sequence[Address]) -> str:
    """Return addresses as one text.

    Examples
    --------
    >>> shown([("one", 6379), ("two", 6380)])
    'one:6379,two:6380'
    """
    return ",".join(f"{host}:{port}" for host, port in addresses)
