"""State in an HBase table, through HBase's Thrift gateway: late writes never show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trident.backends.hbase.backing_map import HBaseMap
from trident.backends.hbase.connections import Gateway
from trident.backends.hbase.family import Family
from trident.backends.state_url import StateURL
from trident.backends.store_checks import check_store, choice_problem, timeout_problem
from trident.states.errors import StateError
from trident.states.finding import Finding
from trident.states.maps.factory import MapStateFactory, other_kinds
from trident.states.store import RoundTrips, Store
from trident.states.values import StateType

_PORT = 9090


@dataclass(frozen=True)
class HBaseStore(Store):
    """One state in a column of an HBase table; several states may share table and family.

    Pickles, and connects to nothing until its map is used. Tasks update the state, each through
    connections that its process keeps.

    Parameters
    ----------
    host, port
        HBase's Thrift gateway (``hbase thrift start``).
    table : str
        The table; made at first use if it is missing. ``namespace:table`` for one in a namespace,
        which has to exist.
    family : str
        The column family; an existing table must have it, without a TTL.
    prefix : str or None
        The column qualifier; None takes the name of the state.
    timeout : float
        Seconds to wait for an answer; making a connection may take 2.
    transport : str
        ``"buffered"``, or ``"framed"`` as the gateway was started with ``-f``.
    protocol : str
        ``"binary"``, or ``"compact"`` as the gateway was started with ``-c``.

    Notes
    -----
    The row is the encoded key. A batch's cells have timestamps made of batch and attempt, far
    beyond those of clocks, so that cells written at the servers' time are older. So cells of
    Storm's ``HBaseMapState`` are taken over (with its qualifier as `prefix`, and keys of one
    string; a global aggregate has the key that HBaseMapState gives it). Storm can read our cells,
    but no longer replace them. A deletion without a timestamp changes nothing; one with a timestamp
    hides what is written below it, until a compaction.

    Examples
    --------
    >>> store = HBaseStore("hbase.example", table="counts").named("words")
    >>> store.prefix, store.hosted
    ('words', 'executor')
    >>> store.identity
    ('hbase', 'hbase.example:9090/counts', 'state:words')
    """

    host: str = "localhost"
    port: int = _PORT
    table: str = "trident"
    family: str = "state"
    prefix: str | None = None
    timeout: float = 5.0
    transport: Literal["buffered", "framed"] = "buffered"
    protocol: Literal["binary", "compact"] = "binary"

    hosted = "executor"
    map_type = HBaseMap
    calls = RoundTrips((3, 3), (12, 12))
    snapshot_key = ("$HBASE_STATE_GLOBAL$",)
    """Where Storm's HBaseMapState keeps a single value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.table.removeprefix("default:"))
        problems = {
            f"table {self.table!r} is no name; allowed are letters, digits, _, - and ., perhaps "
            "after a namespace and a colon": not re.fullmatch(r"(\w+:)?\w[\w.-]*", self.table),
            f"family {self.family!r} is no name; allowed is what has no spaces, colons or slashes "
            "and doesn't start with a dot": (
                not re.fullmatch(r"[^\s:/\\.\0-\x1f][^\s:/\\\0-\x1f]*", self.family)
            ),
            **choice_problem("transport", self.transport, ("buffered", "framed")),
            **choice_problem("protocol", self.protocol, ("binary", "compact")),
            **timeout_problem(self.timeout),
        }
        check_store(self, problems)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells this state from others: ``("hbase", place/table, family:qualifier)``."""
        place = f"{self.host}:{self.port}/{self.table}"
        return "hbase", place, f"{self.family}:{self.own_name}"

    def open(self) -> HBaseMap:
        return HBaseMap(self._family, self.own_name)

    def examine(self) -> Iterator[Finding]:
        """Yield whether the gateway answers, and whether the table can keep states."""
        family, problem, exists = self._family, "", False
        with family.client() as client:
            try:
                exists = family.check(client)
            except StateError as error:
                problem = str(error)
        gateway = str(family.gateway)
        yield Finding("ok", f"{gateway} answers")
        if problem:
            what, _, advice = problem.partition(". ")
            yield Finding("problem", what, advice)
        elif exists:
            what = f"{gateway}: the family {self.family} of {self.table} keeps everything"
            yield Finding("ok", what)
        else:
            yield Finding("ok", f"{gateway}: the table {self.table} will be made at first use")

    @property
    def _family(self) -> Family:
        gateway = Gateway(self.host, self.port, self.timeout, self.transport, self.protocol)
        return Family(gateway, self.table, self.family)


def opaque(host: str = "localhost", port: int = _PORT, **options: Any) -> MapStateFactory:
    """Return a factory of opaque map states in HBase: exact with every source.

    Parameters
    ----------
    host, port
        HBase's Thrift gateway.
    options
        Further parameters of :class:`HBaseStore` and of
        :class:`~trident.states.maps.factory.MapStateFactory`.

    Examples
    --------
    >>> counts = opaque("hbase.example", table="counts", max_get=500)
    >>> counts.store.table, counts.kind, counts.max_get
    ('counts', <StateType.OPAQUE: 'opaque'>, 500)
    """
    given = {"host": host, "port": port, **options}
    return MapStateFactory.over(HBaseStore, StateType.OPAQUE, given)


transactional, nonTransactional = other_kinds(opaque)


def from_url(url: StateURL) -> MapStateFactory:
    """Return the factory of ``hbase://host:port/table/family``; its parts may be left out.

    Its own options are `timeout`, `transport` and `protocol`; the prefix is the qualifier.

    Raises
    ------
    StateURLError
        When the URL names several hosts, a login, or more than a table and a family.

    Examples
    --------
    >>> factory = from_url(StateURL.parse("hbase://hbase.example/counts/f?timeout=10&prefix=n"))
    >>> factory.identity
    ('hbase', 'hbase.example:9090/counts', 'f:n')
    """
    options = url.read(timeout=float, transport=str, protocol=str)
    url.check_no_login()
    form = "as hbase://host:port/table/family"
    path = url.match_path("(?:/(?P<table>[^/]+)(?:/(?P<family>[^/]+))?)?/?", form)
    given: dict[str, Any] = {name: text for name, text in path.groupdict().items() if text}
    if url.hosts:
        given["host"], given["port"] = url.address(_PORT)
    return options.factory(HBaseStore, **given)
