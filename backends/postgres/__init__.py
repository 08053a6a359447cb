"""State in PostgreSQL: in tables that can be read and joined with SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from trident.backends.postgres.backing_map import PostgresMap, PostgresNumbers, wait_committed
from trident.backends.postgres.connections import OPTIONS, Database, address, examine_server
from trident.backends.postgres.tables import (
    CATALOG,
    DEFAULT_COLUMNS,
    KEY_TYPES,
    PostgresTable,
    column_of,
    view_of,
)
from trident.backends.state_url import StateURL
from trident.backends.store_checks import check_store, choice_problem, timeout_problem
from trident.states.finding import Finding
from trident.states.maps.factory import MapStateFactory, other_kinds
from trident.states.serializers import JSONSerializer, Serializer
from trident.states.store import RoundTrips, Store
from trident.states.values import StateType

__all__ = [
    "PostgresStore",
    "from_url",
    "nonTransactional",
    "opaque",
    "transactional",
    "wait_committed",
]

_TYPES = {"json": "json", "bigint": "bigint", "double": "double precision"}
_LONGEST_NAME = 63
_LONGEST_PREFIX = _LONGEST_NAME - len(view_of(""))


@dataclass(frozen=True, kw_only=True)
class PostgresStore(Store):
    """One state in PostgreSQL; several, with different prefixes, may share a database or a table.

    Pickles, with its password, and connects to nothing until its map is used. Tasks, the driver and
    readers each have connections of their own; a process keeps them for later calls.

    Parameters
    ----------
    host, port, database, user, password : str or None
        As libpq has them; it takes missing ones from its environment (``PGHOST``, ``PGPASSWORD``),
        the service, or a ``passfile``. ``"one,two"`` are several hosts.
    prefix : str or None
        The name of the state's table, and the beginning of the name of its view,
        ``<prefix>_committed``; None takes the name of the state.
    table : str or None
        A table that several states share, all of one kind and type of values.
    values : str
        Which type the columns of values have: ``"json"``, which keeps what JSON keeps (with
        another serializer than JSON, bytes); ``"bigint"`` for int, to which the database adds by
        itself, ``"double"`` for float likewise.
    columns : sequence of str
        The view's names for the fields of a key and for the value: ``("word", "count")``. A field
        may have a type, ``"day:date"``; otherwise it has the one that the topology declares:
        string, long, double, boolean, decimal, date, timestamp or timestamp_ntz. All others are
        text. A view keeps the types of the state's first start.
    kind, serializer : StateType, Serializer
        What the table keeps.
    timeout : float
        Seconds to wait for an answer, also to a write of 65,536 keys, or of `max_put` keys; making
        a connection may take 2.
    service, target_session_attrs, sslmode, sslrootcert, sslcert, sslkey : str or None
        As libpq has them; files must be on every machine of the Spark cluster.

    Notes
    -----
    The view of an opaque state shows what is committed, at any moment, to any client that may read
    it; other states have none. JSON is kept as text: ``jsonb`` would make 1e300 an integer.
    PostgreSQL's configuration decides how long acknowledged writes last: ``synchronous_commit``,
    and ``synchronous_standby_names`` if a standby may take over.

    Examples
    --------
    >>> store = PostgresStore(host="db", database="shop", password="secret").named("counts")
    >>> store.identity
    ('postgresql', 'db:5432/shop', 'counts')
    >>> "secret" in repr(store)
    False
    """

    host: str | None = None
    port: int | str | None = None
    database: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    prefix: str | None = None
    table: str | None = None
    values: str = "json"
    columns: Sequence[str] = DEFAULT_COLUMNS
    kind: StateType = StateType.OPAQUE
    serializer: Serializer = field(default_factory=JSONSerializer)
    timeout: float = 30.0
    service: str | None = None
    target_session_attrs: str | None = None
    sslmode: str | None = None
    sslrootcert: str | None = None
    sslcert: str | None = None
    sslkey: str | None = None

    hosted = "executor"
    calls = RoundTrips((1, 2), (4, 4))

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        columns = [name for name, _ in map(column_of, self.columns)]
        kinds = [kind for _, kind in map(column_of, self.columns)]
        names = [self.table or "t", *columns]
        name = view_of(self.own_name)
        problems = {
            "table or columns hold half of a surrogate pair, which has no UTF-8; give another": (
                bool(re.search("[\ud800-\udfff]", "".join(names)))
            ),
            f"prefix {self.prefix!r} can't name a table; allowed are 1 to {_LONGEST_PREFIX} bytes "
            f"without U+0000, and not {CATALOG}": (
                not _is_name(name) or self.prefix in ("", CATALOG)
            ),
            f"table {self.table!r} or columns {self.columns!r} can't be names; allowed are 1 to "
            f"{_LONGEST_NAME} bytes without U+0000, and not {CATALOG}": (
                not all(map(_is_name, names)) or self.table in ("", CATALOG)
            ),
            f"columns {self.columns!r} are not at least two different names, for the fields of a "
            "key and for the value": len({*columns}) != max(len(columns), 2),
            f"columns {self.columns!r} have a type that is unknown; a field of a key may be "
            f"{', '.join(KEY_TYPES)}, and a value has the type of values=": (
                any(kinds[-1:]) or not {*kinds} <= {"", *KEY_TYPES}
            ),
            **choice_problem("values", self.values, _TYPES),
            **timeout_problem(self.timeout),
        }
        check_store(self, problems)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells this state from others: ``("postgresql", server and database, prefix)``."""
        return "postgresql", self._server.place, self.own_name

    @property
    def map_type(self) -> type[PostgresMap]:  # type: ignore[override]
        """The class of the map; the one of numbers adds by itself."""
        return PostgresMap if self.values == "json" else PostgresNumbers

    def keyed(self, types: Sequence[str | None]) -> Self:
        """Return this store with these types for columns of keys that have a name and no type."""
        if self.columns == DEFAULT_COLUMNS or len(types) != len(self.columns) - 1:
            return self
        *fields, value = self.columns
        typed = [
            f"{name}:{kind}"
            if kind and not column_of(name)[1] and kind.partition("(")[0] in KEY_TYPES
            else name
            for name, kind in zip(fields, types, strict=True)
        ]
        return replace(self, columns=(*typed, value))

    def open(self) -> PostgresMap:
        values = _TYPES[self.values]
        if values == "json" and not isinstance(self.serializer, JSONSerializer):
            values = "bytea"
        columns = tuple(self.columns)
        table = PostgresTable(
            self.own_name, self.table, self.kind, values, columns, self.serializer
        )
        return self.map_type(self._server, table)

    def examine(self) -> Iterator[Finding]:
        return examine_server(self._server)

    @property
    def _server(self) -> Database:
        names = ("host", "port", "user", "password", *OPTIONS)
        given = {name: getattr(self, name) for name in names}
        return Database.of({"dbname": self.database, **given}, self.timeout)


def opaque(
    host: str | None = None, database: str | None = None, prefix: str | None = None, **options: Any
) -> MapStateFactory:
    """Return a factory of opaque map states in PostgreSQL: exact with every source.

    Parameters
    ----------
    host, database, prefix
        See :class:`PostgresStore`.
    options
        Its other parameters, and those of :class:`~trident.states.maps.factory.MapStateFactory`.

    Examples
    --------
    >>> counts = opaque("db", "shop", values="bigint", columns=["word", "count"], max_put=10_000)
    >>> counts.store.values, counts.max_put
    ('bigint', 10000)
    """
    given = {"host": host, "database": database, "prefix": prefix, **options}
    return MapStateFactory.over(PostgresStore, StateType.OPAQUE, given)


transactional, nonTransactional = other_kinds(opaque)


def from_url(url: StateURL) -> MapStateFactory:
    """Return the factory of ``postgresql://user:password@host:port/database``.

    Everything but the scheme may be left out; there may be several hosts. The options are those
    parameters of :class:`PostgresStore` that the rest of the URL does not say; `columns` are
    separated by commas.

    Examples
    --------
    >>> url = "postgresql://me:secret@one,two:5433/shop?prefix=counts&columns=word,count"
    >>> store = from_url(StateURL.parse(url)).store
    >>> store.identity, store.columns
    (('postgresql', 'one:5432,two:5433/shop', 'counts'), ('word', 'count'))
    """
    others = ("table", "values", "columns", *OPTIONS)
    found = url.read(timeout=float, **dict.fromkeys(others, str))
    if "columns" in found.own:
        found.own["columns"] = found.own["columns"].split(",")
    place = address(url)
    return found.factory(PostgresStore, database=place.pop("dbname"), **place)


def _is_name(text: str) -> bool:
    return 0 < len(text.encode(errors="replace")) <= _LONGEST_NAME and "\0" not in text
