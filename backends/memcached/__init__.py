"""State in Memcached: fast, shared by many processes, and only as lasting as a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trident.backends.memcached.backing_map import MemcachedMap
from trident.backends.memcached.connections import PORT, NodeAddress, NodeLike
from trident.backends.memcached.keys import LONGEST_PREFIX, quote_prefix
from trident.backends.state_url import StateURL
from trident.backends.store_checks import check_store, timeout_problem
from trident.states.finding import Finding
from trident.states.maps.factory import MapStateFactory, other_kinds
from trident.states.store import RoundTrips, Store
from trident.states.values import StateType

_NODES = (f"localhost:{PORT}",)


@dataclass(frozen=True)
class MemcachedStore(Store):
    """One state on one or several Memcached nodes; states of different prefixes may share them.

    Pickles, and connects to nothing until its map is used. Tasks read and write it directly, each
    process through connections that it keeps.

    Parameters
    ----------
    nodes : sequence of str or (str, int)
        The servers, each ``host``, ``host:port``, ``[IPv6]:port`` or a pair of host and port; kept
        as texts. The key and the number of nodes decide which node has a key. No other node
        replaces one that is away: batches fail until it is back. So the list and its order must
        never change.
    prefix : str or None
        What the stored keys begin with, up to a ``:``; None takes the name of the state. Empty:
        keys are stored bare, as Storm's trident-memcached stores them, and a state that Storm wrote
        on a single node goes on; nothing else may then use those nodes.
    ttl : int
        Seconds until an entry that is not written again is forgotten, and counts from nothing; 0
        for never.
    timeout : float
        Seconds to wait while a node doesn't answer.

    Notes
    -----
    Updates are exact while Memcached keeps what it was given: every entry is written only over the
    version that was read (``gets``, ``cas``). But it is a cache:

    - A node that restarts has lost all its entries. Each node has a copy of the state's control
      record, so this is noticed, at the latest before the batch is committed, and the run stops;
      it never goes on from nothing. The same holds if the control record alone was lost.
    - If memory runs out, Memcached *evicts* entries, which then silently count from nothing. That
      can't be noticed; watch ``evictions`` in its ``stats``. With ``memcached -M`` it refuses
      writes instead, and batches fail and are retried until it has memory (``-m``).
    - Nothing survives a loss of power.

    A value over a node's limit (``memcached -I``, 1 MB by default) is refused before anything is
    sent. Keys that Memcached doesn't take (over 250 bytes, white space, control characters) are
    stored under escaped names.

    Examples
    --------
    >>> store = MemcachedStore(["cache1", "cache2:11212"]).named("words")
    >>> store.nodes, store.prefix, store.hosted
    (('cache1:11211', 'cache2:11212'), 'words', 'executor')
    """

    nodes: Sequence[NodeLike] = _NODES
    prefix: str | None = None
    ttl: int = 0
    timeout: float = 5.0

    hosted = "executor"
    map_type = MemcachedMap
    calls = RoundTrips((3, 3), (9, 12))

    def __post_init__(self) -> None:
        nodes = [self.nodes] if isinstance(self.nodes, str) else self.nodes
        places = tuple(str(NodeAddress.parse(node)) for node in nodes)
        object.__setattr__(self, "nodes", places)
        prefix = quote_prefix(self.own_name)
        problems = {
            f"nodes {', '.join(places) or 'are missing'}; give each node once, and at least one": (
                not places or len(set(places)) < len(places)
            ),
            f"prefix {self.own_name[:40]!r}… takes {len(prefix)} bytes of every key, "
            f"percent-encoded; allowed are {LONGEST_PREFIX}": len(prefix) > LONGEST_PREFIX,
            f"ttl {self.ttl} is below 0 seconds": self.ttl < 0,
            **timeout_problem(self.timeout),
        }
        check_store(self, problems)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells this state from others: ``("memcached", nodes, prefix)``."""
        return "memcached", ",".join(map(str, self.nodes)), self.own_name

    def examine(self) -> Iterator[Finding]:
        """Yield whether each node answers, and whether any has forgotten entries."""
        opened = self.open()
        for node, said in zip(self.nodes, opened.statistics(), strict=True):
            yield Finding("ok", f"memcached at {node} answers")
            if evicted := int(said.get(b"evictions", 0)):
                what = f"memcached at {node} has evicted {evicted:,} entries: they count anew"
                advice = "Give it more memory (memcached -m), or have it refuse writes (-M)."
                yield Finding("warning", what, advice)
        if self.ttl:
            what = f"entries expire {self.ttl} s after their last write, and count from nothing"
            yield Finding("warning", what, "Leave ttl= out where totals have to be right.")

    def open(self) -> MemcachedMap:
        nodes = tuple(map(NodeAddress.parse, self.nodes))
        return MemcachedMap(nodes, self.own_name, self.ttl, self.timeout)


def opaque(
    nodes: Sequence[NodeLike] = _NODES, prefix: str | None = None, **options: Any
) -> MapStateFactory:
    """Return a factory of opaque map states in Memcached: they withstand any replay.

    Parameters
    ----------
    nodes, prefix
        See :class:`MemcachedStore`, and what it says of losses.
    options
        Its other parameters, and those of :class:`~trident.states.maps.factory.MapStateFactory`.

    Examples
    --------
    >>> counts = opaque(["cache1", "cache2"], "counts", max_get=10_000)
    >>> counts.identity
    ('memcached', 'cache1:11211,cache2:11211', 'counts')
    """
    given = {"nodes": nodes, "prefix": prefix, **options}
    return MapStateFactory.over(MemcachedStore, StateType.OPAQUE, given)


transactional, nonTransactional = other_kinds(opaque)


def from_url(url: StateURL) -> MapStateFactory:
    """Return the factory of ``memcached://host:port,host:port?prefix=…&ttl=…&timeout=…``.

    Raises
    ------
    StateURLError
        When the URL has a user, a password or a path, or an unknown option.

    Examples
    --------
    >>> factory = from_url(StateURL.parse("memcached://cache1,cache2:11212?prefix=counts&ttl=60"))
    >>> factory.store
    MemcachedStore(nodes=('cache1:11211', 'cache2:11212'), prefix='counts', ttl=60, timeout=5.0)
    """
    options = url.read(ttl=int, timeout=float)
    url.check_no_login()
    url.match_path("/*", "without a path")
    nodes = url.addresses(PORT) if url.hosts else _NODES
    return options.factory(MemcachedStore, nodes=nodes)
