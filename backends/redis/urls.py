"""The URLs of states in Redis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trident.backends.redis.store import PORT, RedisStore
from trident.backends.state_url import StateURL
from trident.states.errors import StateURLError
from trident.states.maps.factory import MapStateFactory

_SENTINEL_PORT = 26379
CONNECTION: Mapping[str, type] = {
    "tls": bool,
    "tls_ca": str,
    "tls_cert": str,
    "tls_key": str,
    "timeout": float,
    "wait_replicas": int,
    "wait_timeout": float,
}
"""The options that say how to connect, and how durable what is written has to be."""
_ENTRIES: Mapping[str, type] = {"layout": str, "ttl": int}
_SENTINEL_LOGIN: Mapping[str, type] = {"sentinel_user": str, "sentinel_password": str}


def from_url(url: StateURL) -> MapStateFactory:
    """Return the factory that a URL describes; connects to nothing.

    ``redis://[user:password@]host:port/db``, ``redis+cluster://host:port,host:port`` or
    ``redis+sentinel://host:port,host:port/service/db``, each with ``rediss`` for TLS. The options
    are those parameters of :class:`RedisStore` that the rest of the URL does not say.

    Raises
    ------
    StateURLError
        For hosts, a path or an option that the scheme doesn't take.
    ValueError
        For a value that :class:`RedisStore` refuses.

    Examples
    --------
    >>> counts = from_url(StateURL.parse("rediss://:secret@cache/3?prefix=counts&layout=hash"))
    >>> counts.store.identity, counts.store.tls, counts.store.layout
    (('redis', 'cache:6379/3', 'counts'), True, 'hash')
    >>> counts = from_url(StateURL.parse("redis+sentinel://one,two:26380/main/3"))
    >>> counts.named("words").store.identity
    ('redis', 'service main of one:26379,two:26380/3', 'words')
    """
    place, further = place_of(url)
    found = url.read(**CONNECTION, **_ENTRIES, **further)
    check_tls(url, found.own)
    return found.factory(RedisStore, **place)


def place_of(url: StateURL) -> tuple[dict[str, Any], Mapping[str, type]]:
    """Return what hosts, path and login say, and the options that only such a place has."""
    protocol, _, deployment = url.scheme.partition("+")
    login = {"user": url.user, "password": url.password, "tls": protocol == "rediss"}
    match deployment:
        case "cluster":
            url.match_path("/?", "without a path")
            return {**login, "cluster": url.addresses(PORT)}, {"partitions": int}
        case "sentinel":
            path = url.match_path("/([^/]+)(?:/([0-9]{1,9})?)?", "as /service or /service/db")
            service = {"service": path[1], "db": int(path[2] or 0)}
            sentinels = {"sentinels": url.addresses(_SENTINEL_PORT)}
            return {**login, **service, **sentinels}, _SENTINEL_LOGIN
        case _:
            path = url.match_path("(?:/([0-9]{1,9})?)?", "with the number of a database, as in /0")
            several = f"Several are for {protocol}+cluster and {protocol}+sentinel."
            host, port = url.address(PORT, several)
            return {**login, "host": host, "port": port, "db": int(path[1] or 0)}, {}


def check_tls(url: StateURL, options: Mapping[str, Any]) -> None:
    """Raise StateURLError if `options` contradict the scheme."""
    if url.scheme.startswith("rediss") and not options.get("tls", True):
        what = f"{url.scheme}: it speaks TLS, and the URL says tls=false"
        advice = "Leave tls= out; without TLS the scheme is redis instead of rediss."
        raise StateURLError(what, "", (), advice)
