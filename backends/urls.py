"""Makes the factory of a state from its URL, by the backend that its scheme names."""

from __future__ import annotations

from typing import cast

from trident.backends.schemes import REDIS, BuiltIn, Schemes
from trident.backends.state_url import StateURL
from trident.states.errors import StateURLError
from trident.states.maps.factory import MapStateFactory
from trident.states.state import StateFactory
from trident.states.tracebacks import Briefly

STATES = Schemes(
    "state",
    "trident.states",
    {
        **dict.fromkeys(REDIS, BuiltIn("trident.backends.redis:from_url", "redis")),
        "memcached": BuiltIn("trident.backends.memcached:from_url", "memcached"),
        "hbase": BuiltIn("trident.backends.hbase:from_url", "hbase"),
        "postgresql": BuiltIn("trident.backends.postgres:from_url", "postgres"),
        "sqlite": BuiltIn("trident.backends.sqlite:from_url"),
        "memory": BuiltIn("trident.backends.memory:from_url"),
    },
)
"""The schemes that the URL of a state may have."""


def state_from_url(url: str | StateURL) -> MapStateFactory:
    """Return the factory of the state that a URL describes.

    Connects to nothing and needs no driver: each process that uses the state opens the store. A
    driver that is missing there is an ImportError with the ``pip install`` line. The factory
    pickles, with the URL's password; no ``repr`` or error shows it. A topology takes the URL itself
    wherever it takes a factory.

    Parameters
    ----------
    url : str or StateURL
        ``scheme:place?option=value&…``. Every scheme takes the options ``kind`` (``opaque``, which
        is the default, ``transactional`` or ``nontransactional``), ``prefix`` (default: the state's
        name), ``cache_size`` (entries to keep in memory), ``max_get`` and ``max_put`` (keys to
        read and write at once), ``serializer`` (``json`` or ``pickle``) and ``hosted`` (``driver``
        or ``executor``: which process of Spark's updates it). The table of schemes, and what else
        each takes, is in ``docs/states.md``.

    Returns
    -------
    MapStateFactory
        For every built-in scheme. Another package's may make any `StateFactory`.

    Raises
    ------
    StateURLError
        For a malformed URL, an unknown scheme or option, and a value that is not allowed; also if
        the package that registered the scheme can't be used.

    Notes
    -----
    Other packages register schemes as entry points of the group ``trident.states``: the name is
    the scheme, the object a function that takes a `StateURL` and returns a `StateFactory`.

    Examples
    --------
    >>> counts = state_from_url("sqlite:counts.db?prefix=words&kind=transactional")
    >>> counts.kind, counts.store.prefix
    (<StateType.TRANSACTIONAL: 'transactional'>, 'words')
    >>> state_from_url("memory:seen?cachesize=100")
    Traceback (most recent call last):
    ...
    trident.states.errors.StateURLError: memory: unknown option 'cachesize'; there are: ...
    Did you mean 'cache_size'?
    """
    if not isinstance(url, str | StateURL):
        raise StateURLError("the URL of a state is a string, found", type(url).__name__)
    with Briefly():
        parsed = StateURL.parse(url) if isinstance(url, str) else url
        return cast(MapStateFactory, STATES.make(parsed, StateFactory))  # type: ignore[type-abstract]
