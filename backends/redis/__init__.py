"""State in Redis: one server, a master that Sentinels name, or a Cluster."""

from __future__ import annotations

from typing import Any

from trident.backends.redis.store import PORT, RedisStore
from trident.backends.redis.urls import from_url
from trident.states.maps.factory import MapStateFactory, other_kinds
from trident.states.values import StateType

__all__ = ["RedisStore", "from_url", "nonTransactional", "opaque", "transactional"]


def opaque(
    host: str = "localhost", port: int = PORT, prefix: str | None = None, **options: Any
) -> MapStateFactory:
    """Return a factory of opaque map states in Redis: exact with every source.

    Parameters
    ----------
    host, port, prefix
        See :class:`RedisStore`.
    options
        Its other parameters, and those of :class:`~trident.states.maps.factory.MapStateFactory`.

    Examples
    --------
    >>> counts = opaque("cache", db=3, layout="hash", cache_size=10_000)
    >>> counts.store.db, counts.cache_size
    (3, 10000)
    """
    given = {"host": host, "port": port, "prefix": prefix, **options}
    return MapStateFactory.over(RedisStore, StateType.OPAQUE, given)


transactional, nonTransactional = other_kinds(opaque)
