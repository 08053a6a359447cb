"""The configuration of a state in Redis: which servers, how to connect, how entries are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from trident.backends.redis.backing_map import BareRedisMap, RedisMap
from trident.backends.redis.cluster import RedisClusterMap
from trident.backends.redis.connections import ConnectionOptions
from trident.backends.redis.control import Waiting
from trident.backends.redis.examination import examine_server
from trident.backends.redis.layouts import HashLayout, Layout, StringLayout
from trident.backends.redis.masters import (
    ClusterMasters,
    FixedMaster,
    Masters,
    SentinelMaster,
    join_addresses,
)
from trident.backends.redis.sharded_map import ShardedMap
from trident.backends.sockets import CONNECT_SECONDS
from trident.backends.store_checks import check_store, choice_problem, timeout_problem
from trident.states.finding import Finding
from trident.states.store import RoundTrips, Store

PORT = 6379
_LAYOUTS: dict[str, type[Layout]] = {"string": StringLayout, "hash": HashLayout}
_FORBIDDEN = "{}\0"


@dataclass(frozen=True, kw_only=True)
class RedisStore(Store):
    r"""One state in Redis; several states, with different prefixes, may share a database.

    Pickles, with its passwords, and connects to nothing until its map is used. Tasks, the driver
    and readers each have connections of their own; a process keeps them for later calls.

    Parameters
    ----------
    host, port : str, int
        The server, if it is a single one.
    db : int
        The number of its database; a cluster has only 0.
    prefix : str or None
        What the redis keys begin with, see the notes; None takes the name of the state.
    layout : str
        ``"string"``: each entry is a string of its own. ``"hash"``: all are fields of one hash.
    ttl : int or None
        Seconds that an entry lives after its last write; in a hash, that the whole hash lives.
        An expired entry counts from nothing, so counts are exact only without.
    user, password : str or None
        As in the server's ACL; a password alone is the default user's.
    tls : bool
        Whether to speak TLS, to Sentinels too.
    tls_ca, tls_cert, tls_key : str or None
        Files, which every machine of the Spark cluster must have: the authority that signed the
        servers' certificates (None: those that the system trusts), and this client's own
        certificate and key, if the servers ask for them.
    timeout : float
        Seconds to wait for an answer.
    wait_replicas, wait_timeout : int, float
        Before a batch is committed, `wait_replicas` replicas of each master must acknowledge it
        within `wait_timeout` seconds, or it is retried. 0 waits for none.
    cluster : sequence of (str, int)
        Some nodes of a Redis Cluster, instead of host and port.
    partitions : int
        How many shards a cluster's entries are divided into; never changed afterwards.
    sentinels : sequence of (str, int)
        Sentinels, instead of host and port.
    service : str or None
        The Sentinels' name of the master.
    sentinel_user, sentinel_password : str or None
        The login at the Sentinels themselves.

    Notes
    -----
    A prefix may hold anything but ``{``, ``}`` and U+0000. If it is ``a:b``, no state of strings on
    the server may have the prefix ``a``. If it is ``counts``, the entry ``dog`` is the string
    ``counts:dog``, or the field ``dog`` of the hash ``counts``; in a cluster ``counts:{p17}:dog``,
    or the field ``dog`` of ``counts:{p17}``. The empty prefix leaves keys as they are, with the
    layout ``"string"`` on a single server. It is for a database that holds nothing else, or only
    states whose prefixes and ``:`` begin none of its keys. Storm's RedisMapState writes either bare
    keys, or a hash named by its ``additionalKey``. The control record is a string of its own,
    ``counts:\0trident.control``, or ``counts\0trident.control`` beside a hash, and never expires.

    Redis's configuration decides how long acknowledged writes last: ``appendonly yes`` with
    ``appendfsync always`` survives a loss of power; replicas lag behind without `wait_replicas`. A
    batch is retried if a server restarts or fails over meanwhile. With ``maxmemory``, the policy
    has to be ``noeviction``.

    Examples
    --------
    >>> store = RedisStore(host="cache", password="secret").named("counts")
    >>> store.identity
    ('redis', 'cache:6379/0', 'counts')
    >>> "secret" in repr(store)
    False
    """

    host: str = "localhost"
    port: int = PORT
    db: int = 0
    prefix: str | None = None
    layout: str = "string"
    ttl: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    timeout: float = 5.0
    wait_replicas: int = 0
    wait_timeout: float = 1.0
    cluster: Sequence[tuple[str, int]] = ()
    partitions: int = 64
    sentinels: Sequence[tuple[str, int]] = ()
    service: str | None = None
    sentinel_user: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)

    hosted = "executor"
    snapshot_key = ("$REDIS-MAP-STATE-GLOBAL",)
    """Where Storm's RedisMapState keeps a single value."""

    def __post_init__(self) -> None:
        for name in ("cluster", "sentinels"):
            given = getattr(self, name)
            pairs = all(isinstance(node, tuple | list) and len(node) == 2 for node in given)
            problem = (
                f"{name} takes pairs of host and port, as in [('localhost', 7000)], found {given!r}"
            )
            check_store(self, {problem: not pairs})
            object.__setattr__(self, name, tuple((host, port) for host, port in given))
        prefix = self.prefix
        problems = {
            **choice_problem("layout", self.layout, _LAYOUTS),
            f"prefix {prefix!r} holds one of '{{', '}}' and U+0000, so its keys could be another "
            "state's; give prefix= without them": bool({*_FORBIDDEN} & {*(prefix or "")}),
            "the empty prefix leaves keys as they are, which takes layout='string' and a single "
            "server; give a prefix": prefix == "" and bool(self.layout == "hash" or self.cluster),
            f"ttl {self.ttl} is not at least 1 second; leave it out to keep entries for ever": (
                self.ttl is not None and self.ttl < 1
            ),
            "a cluster and sentinels were given; give one of them": bool(
                self.cluster and self.sentinels
            ),
            "sentinels and service go together; give both": (
                bool(self.sentinels) != bool(self.service)
            ),
            f"a cluster has only db 0, not {self.db}": bool(self.cluster and self.db),
            f"db {self.db} is not the number of a database; they start at 0": self.db < 0,
            "a user without a password was given; give both, or the password alone": (
                self.user is not None and self.password is None
            ),
            f"partitions {self.partitions} is not from 1 to 16384": (
                self.partitions not in range(1, 16385)
            ),
            **timeout_problem(self.timeout),
            f"wait_replicas {self.wait_replicas} is below 0": self.wait_replicas < 0,
            f"wait_timeout {self.wait_timeout} is not above 0 and below timeout, {self.timeout}: "
            "no answer would come in time": (
                self.wait_replicas > 0 and not 0.001 <= self.wait_timeout < self.timeout
            ),
        }
        check_store(self, problems)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells this state from others: ``("redis", server and database, prefix)``."""
        if self.cluster:
            place = f"cluster {join_addresses(sorted(self.cluster))}"
        elif self.sentinels:
            place = f"service {self.service} of {join_addresses(sorted(self.sentinels))}/{self.db}"
        else:
            place = f"{self.host}:{self.port}/{self.db}"
        return "redis", place, self.own_name

    @property
    def shards(self) -> int | None:  # type: ignore[override]
        """How many shards a cluster's entries are divided into; None for one server."""
        return self.partitions if self.cluster else None

    @property
    def calls(self) -> RoundTrips:  # type: ignore[override]
        """How often a batch asks the servers."""
        return RoundTrips((3, 4), (14, 14)) if self.cluster else RoundTrips((3, 3), (6, 6))

    @property
    def map_type(self) -> type[ShardedMap]:  # type: ignore[override]
        """The class of the map; without a prefix its keys are beside all others."""
        if self.cluster:
            return RedisClusterMap
        return RedisMap if self.own_name else BareRedisMap

    def open(self) -> ShardedMap:
        """Return the map; it connects when it is first used."""
        name = self.own_name.encode()
        names = (
            [name + b":{p%d}" % shard for shard in range(self.shards)] if self.shards else [name]
        )
        layouts = [_LAYOUTS[self.layout](each, self.ttl) for each in names]
        options = self.connection_options
        return self.map_type(self.masters, options, self.own_name, layouts, self.waiting)

    def examine(self) -> Iterator[Finding]:
        """Yield whether the servers answer, and whether what they acknowledge lasts."""
        for address, facts in self.open().facts().items():
            yield from examine_server(address, facts, self.wait_replicas)
        if self.ttl:
            what = f"entries expire {self.ttl} s after their last write, and count from nothing"
            yield Finding("warning", what, "Leave ttl= out where totals have to be right.")

    @property
    def connection_options(self) -> ConnectionOptions:
        """How to connect to the servers that have the entries."""
        return self._options(len(self.cluster) or 1)

    @property
    def waiting(self) -> Waiting:
        """How many replicas must have a batch, and how long that may take."""
        return Waiting(self.wait_replicas, self.wait_timeout)

    @property
    def masters(self) -> Masters:
        """What finds the servers that have the entries."""
        if self.cluster:
            return ClusterMasters(tuple(self.cluster), self.connection_options)
        if not self.service:
            return FixedMaster((self.host, self.port))
        options = replace(
            self._options(len(self.sentinels)),
            db=0,
            user=self.sentinel_user,
            password=self.sentinel_password,
            # A Sentinel is never busy, and the next one may answer.
            timeout=min(self.timeout, max(CONNECT_SECONDS / len(self.sentinels), 0.5)),
        )
        return SentinelMaster(self.service, tuple(self.sentinels), options)

    def _options(self, servers: int) -> ConnectionOptions:
        """Return the options of connections to `servers`, which may be tried one by one."""
        names = {each.name for each in fields(ConnectionOptions)} - {"connect"}
        given = {name: getattr(self, name) for name in names}
        return ConnectionOptions(**given, connect=CONNECT_SECONDS / servers)
