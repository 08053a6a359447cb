"""Counts and sums that SQLite computes itself: one statement reads, resolves, adds and writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from trident.backends.sqlite.tables import SQLiteTable, from_native, key_of, sort_by_key, to_native
from trident.states.errors import LongOverflowError, StaleBatchError
from trident.states.keys import decode_key
from trident.states.updaters import check_addable
from trident.states.values import Token

# The cases are the opaque read table; `excluded` is the new row. SQLite would turn an overflow into
# a float and a text into 0. So it adds only numbers (which sort before '') with a small sum by
# itself, and Python adds everything else.
_STATEMENT = """
    INSERT INTO {table} AS stored VALUES (?, ?, ?, ?, NULL)
    ON CONFLICT (key) DO UPDATE SET
        txid = excluded.txid,
        attempt = excluded.attempt,
        (curr, prev) = (
            SELECT
                CASE
                    WHEN before < '' AND excluded.curr < ''
                        AND before + excluded.curr > -9223372036854775808
                        AND before + excluded.curr < 9223372036854775807
                    THEN before + excluded.curr
                    WHEN before IS NULL THEN excluded.curr
                    ELSE trident_add(stored.key, before, excluded.curr)
                END,
                before
            FROM (
                SELECT CASE
                    WHEN stored.txid < excluded.txid THEN
                        CASE {committed} WHEN stored.attempt THEN stored.curr ELSE stored.prev END
                    WHEN stored.txid = excluded.txid AND stored.attempt <= excluded.attempt
                    THEN stored.prev
                    ELSE trident_stale(stored.txid, stored.attempt)
                END AS before
            )
        )"""
_RETRIED = "coalesce((SELECT e.attempt FROM temp.retried AS e WHERE e.txid = stored.txid), 0)"


class Adding:
    """Adds amounts to opaque values through one connection, which gets functions and a table."""

    def __init__(self, connection: sqlite3.Connection, table: SQLiteTable) -> None:
        self._connection = connection
        self._table = table
        self._statement = _STATEMENT.format(table=table.quoted, committed="0")
        self._retried = _STATEMENT.format(table=table.quoted, committed=_RETRIED)
        self._own = Token(0, 0)
        self._refusal: Exception | None = None
        connection.execute(
            "CREATE TEMP TABLE retried (txid INTEGER PRIMARY KEY, attempt INTEGER NOT NULL)"
        )
        connection.create_function("trident_add", 3, self._sum)
        connection.create_function("trident_stale", 2, self._refuse_later)

    def add(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[Any],
        token: Token,
        retried: Mapping[int, int],
    ) -> None:
        """Add `amounts` to the committed values of distinct keys, in a transaction.

        Raises StaleBatchError if a later attempt has written one of them.
        """
        self._own = token
        self._refusal = None
        if retried:
            # Filled anew each time, because a failed transaction undoes it.
            self._connection.execute("DELETE FROM temp.retried")
            self._connection.executemany("INSERT INTO temp.retried VALUES (?, ?)", retried.items())
        stored, added = sort_by_key(keys, to_native(amounts, self._table.serializer))
        rows = zip(stored, repeat(token.txid), repeat(token.attempt), added)
        try:
            statement = self._retried if retried else self._statement  # a tenth slower
            self._connection.executemany(statement, rows)
        except sqlite3.OperationalError:
            if self._refusal is not None:
                raise self._refusal from None
            raise

    def _sum(self, key: str | bytes, before: Any, amount: Any) -> Any:
        try:
            before, amount = from_native([before, amount], self._table.serializer)
            check_addable([key_of(key)], [before])
            total = before + amount
            if type(total) is int and not -(2**63) <= total < 2**63:
                what = f"the value of key {decode_key(key_of(key))!r}"
                raise LongOverflowError(what, total)
            [stored] = to_native([total], self._table.serializer)
        except Exception as error:
            self._refusal = error  # SQLite reports only that a function failed
            raise
        return stored

    def _refuse_later(self, txid: int, attempt: int) -> None:
        self._refusal = StaleBatchError(self._own, Token(txid, attempt))
        raise self._refusal
