"""The statements for one state: one for each call of a map, a transaction by itself."""

from __future__ import annotations

from functools import cached_property

from trident.backends.postgres.driver import statement
from trident.backends.postgres.tables import CATALOG, TOKENS, PostgresTable

# A statement is sent whole, and is its own transaction: no writer can stop in the middle of it and
# hold locks. The lock on the control record keeps it as it was compared, until the commit.
_FENCED = f"""
    WITH fence AS MATERIALIZED (
        SELECT FROM {CATALOG} WHERE name = %(name)s AND control = %(fence)s FOR SHARE
    ), written AS ({{}}) SELECT count(*) FROM fence"""
_OPEN = "WITH fence AS MATERIALIZED (SELECT), written AS ({}) SELECT count(*) FROM fence"

# The opaque read table, for rows that no later attempt has written.
_BEFORE = """
    CASE
        WHEN stored.txid = %(txid)s THEN stored.prev
        WHEN stored.attempt = coalesce((%(retried)s::jsonb ->> stored.txid::text)::integer, 0)
        THEN stored.curr ELSE stored.prev
    END"""
_LATER = "(stored.txid, stored.attempt) > (%(txid)s, %(attempt)s)"

_ROWS = 2000
"""How many rows a page has."""

GET_CONTROL = f"SELECT control, kept FROM {CATALOG} WHERE name = %(name)s"

LOCK_CONTROL = f"SELECT control FROM {CATALOG} WHERE name = %s FOR UPDATE"

# Listeners are notified when it is committed.
PUT_CONTROL = f"""
    WITH changed AS (
        UPDATE {CATALOG} SET control = %(new)s
        WHERE name = %(name)s AND control IS NOT DISTINCT FROM %(expected)s RETURNING name
    ) SELECT pg_notify('{CATALOG}', name) IS NOT NULL FROM changed"""

# Locked in order, so that two transactions that change several records can't wait for each other.
PUT_CONTROLS = f"""
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(%(names)s::text[], %(new)s::bytea[], %(expected)s::bytea[])
            AS given (name, new, expected)
    ), found AS MATERIALIZED (
        SELECT name FROM {CATALOG} JOIN given USING (name) WHERE control = expected
        ORDER BY name FOR UPDATE OF {CATALOG}
    ), changed AS (
        UPDATE {CATALOG} SET control = new FROM given
        WHERE {CATALOG}.name = given.name
            AND (SELECT count(*) FROM found) = (SELECT count(*) FROM given)
        RETURNING {CATALOG}.name
    ) SELECT bool_and(pg_notify('{CATALOG}', name) IS NOT NULL) FROM changed"""

PREFIXES = f"SELECT name FROM {CATALOG} WHERE control IS NOT NULL LIMIT 20"

# A server that recovers after one of its processes has crashed keeps its start time, and loses its
# statistics.
INCARNATION = """
    SELECT extract(epoch FROM pg_postmaster_start_time()) || ' ' ||
        coalesce(extract(epoch FROM stats_reset)::text, '') FROM pg_stat_archiver"""


class Statements:
    """The statements of one state."""

    def __init__(self, table: PostgresTable) -> None:
        self._table = table
        self._types = table.types

    @cached_property
    def get(self) -> str:
        """Reads the entries of `keys`, in their order."""
        names = ", ".join(f"state.{name}" for name in self._types)
        return self._named(
            f"SELECT {names} FROM unnest(%(keys)s::bytea[]) WITH ORDINALITY AS wanted (key, place) "
            "LEFT JOIN {table} AS state USING (key) ORDER BY place"
        )

    @cached_property
    def entries(self) -> str:
        """Reads every key and its entry."""
        names = ", ".join(self._types)
        return self._named(
            f"SELECT {self._table.key}, {names} FROM {{table}} WHERE {self._table.own}"
        )

    @cached_property
    def page(self) -> str:
        """Reads a page of rows behind `after` and up to `end`, keys as the index has them or null:
        the index's key of each row, its key and its entry."""
        names = ", ".join(self._types)
        return self._named(
            f"SELECT key, {self._table.key}, {names} FROM {{table}} WHERE {self._table.own} "
            "AND (%(after)s::bytea IS NULL OR key > %(after)s) "
            "AND (%(end)s::bytea IS NULL OR key <= %(end)s) "
            f"ORDER BY key LIMIT {_ROWS}"
        )

    @cached_property
    def sample(self) -> str:
        """Reads the index's keys on about 2 MB of the table, in their order; `place` is its quoted
        name."""
        percent = "least(100, 2e8 / (1 + pg_relation_size(to_regclass(%(place)s::text))))::real"
        return self._named(
            f"SELECT key FROM {{table}} TABLESAMPLE SYSTEM ({percent}) "
            f"WHERE {self._table.own} ORDER BY key"
        )

    @cached_property
    def put(self) -> str:
        """Stores the rows that the table makes columns of."""
        return _OPEN.format(self._put)

    @cached_property
    def put_fenced(self) -> str:
        """The same; if the control record is not the fence it counts 0, and stores nothing."""
        return _FENCED.format(self._put)

    @cached_property
    def remove_fenced(self) -> str:
        """Removes the rows of `keys`, likewise."""
        return _FENCED.format(
            self._named("DELETE FROM {table} USING fence WHERE key = ANY (%(keys)s::bytea[])")
        )

    @cached_property
    def add_fenced(self) -> str:
        """Adds amounts, likewise; a row of a later attempt divides by zero, which undoes the
        statement."""
        return _FENCED.format(
            self._named(
                f"""
                INSERT INTO {{table}} AS stored (key, whole, txid, attempt, curr)
                SELECT new.key, new.whole, %(txid)s, %(attempt)s, new.amount
                FROM {self._amounts} CROSS JOIN fence
                ON CONFLICT (key) DO UPDATE SET
                    txid = CASE WHEN {_LATER} THEN stored.txid / 0 ELSE excluded.txid END,
                    attempt = excluded.attempt,
                    (curr, prev) = (
                        SELECT coalesce(before + excluded.curr, excluded.curr), before
                        FROM (SELECT {_BEFORE} AS before) AS found
                    )"""
            )
        )

    @cached_property
    def why_not_added(self) -> str:
        """Finds a key that a later attempt has written, else one whose sum exceeds 64 bits."""
        total = f"({_BEFORE})::numeric + new.amount::numeric"
        return self._named(
            f"""
            SELECT {_LATER}, stored.txid, stored.attempt,
                substr(coalesce(new.whole, new.key), {len(self._table.lead) + 1}), ({total})::text
            FROM {self._amounts} JOIN {{table}} AS stored USING (key)
            WHERE {_LATER} OR {total} NOT BETWEEN -9223372036854775808 AND 9223372036854775807
            ORDER BY 1 DESC LIMIT 1"""
        )

    @property
    def _amounts(self) -> str:
        return (
            "unnest(%(keys)s::bytea[], %(whole)s::bytea[], "
            f"%(amounts)s::{self._table.values}[]) AS new (key, whole, amount)"
        )

    @property
    def _put(self) -> str:
        arrays = [
            f"%({name})s::{'bigint' if name in TOKENS else kind}[]"
            for name, kind in self._types.items()
        ]
        return self._named(
            f"""
            INSERT INTO {{table}} AS stored (key, whole, {", ".join(self._types)})
            SELECT new.* FROM unnest(%(keys)s::bytea[], %(whole)s::bytea[], {", ".join(arrays)})
                AS new CROSS JOIN fence
            ON CONFLICT (key) DO UPDATE SET """
            + ", ".join(f"{name} = excluded.{name}" for name in self._types)
        )

    def _named(self, text: str) -> str:
        return statement(text, table=self._table.place)
