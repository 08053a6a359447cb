"""State in Redis: one server, a master that Sentinels name, or a Cluster."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from trident.backends.redis_store import PORT, RedisStore
from trident.backends.redis_urls import from_url
from trident.states.stack import MapStateFactory
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
        Its other parameters, and those of :class:`~trident.states.stack.MapStateFactory`.

    Examples
    --------
    >>> counts = opaque("cache", db=3, layout="hash", cache_size=10_000)
    >>> counts.store.db, counts.cache_size
    (3, 10000)
    """
    return _factory(StateType.OPAQUE, host, port, prefix, options)


def transactional(
    host: str = "localhost", port: int = PORT, prefix: str | None = None, **options: Any
) -> MapStateFactory:
    """Return a factory of transactional map states: exact where replays are identical.

    The parameters are those of :func:`opaque`.
    """
    return _factory(StateType.TRANSACTIONAL, host, port, prefix, options)


def nonTransactional(
    host: str = "localhost", port: int = PORT, prefix: str | None = None, **options: Any
) -> MapStateFactory:
    """Return a factory of plain map states: a replayed batch counts twice.

    The parameters are those of :func:`opaque`.
    """
    return _factory(StateType.NON_TRANSACTIONAL, host, port, prefix, options)


def _factory(
    kind: StateType, host: str, port: int, prefix: str | None, options: dict[str, Any]
) -> MapStateFactory:
    names = {each.name for each in fields(RedisStore)}
    own = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    return MapStateFactory(RedisStore(host=host, port=port, prefix=prefix, **own), kind, **others)
