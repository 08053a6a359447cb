"""Each database of rows of ours passes the suite that is for those of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from tests.backends.rows.conftest import DATABASES
from trident.backends.rows import RowsDatabase
from trident.backends.rows.conformance import RowsDatabaseConformance
from trident.backends.rows.sqlite import SQLite
from trident.backends.rows.urls import database_from_url


class Conformance(RowsDatabaseConformance):
    """The suite on a database that has a URL."""

    kind: ClassVar[str]
    url: str

    @pytest.fixture(autouse=True)
    def running(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        server = None
        if self.kind != "sqlite":
            server = request.getfixturevalue(f"{self.kind}_server")
        self.url = server.url if server else f"sqlite:{tmp_path}/shop.db"

    def make_database(self) -> RowsDatabase:
        return database_from_url(self.url)


for database in DATABASES:
    name = f"Test{database.capitalize()}"
    globals()[name] = type(name, (Conformance,), {"kind": database})


class NoTransactions(SQLite):
    beginning = ()


class NoReasons(SQLite):
    def explain(self, error: Exception) -> Exception:
        return error


class NoSums(SQLite):
    def upsert(self, table: Any, key: Any, changed: Any, rows: Any) -> Any:
        return super().upsert(table, key, dict.fromkeys(changed, lambda _, given: given), rows)


class RoundedSums(SQLite):
    adds_decimals = True


class NoTidying(SQLite):
    def empty(self, pipeline: Any, staging: Any) -> None:
        pass


class NewEachTime(SQLite):
    def incarnation(self, connection: Any) -> str:
        return uuid4().hex


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (NoTransactions, "a_transaction_that_fails_leaves_nothing"),
        (NoReasons, "a_refused_row_is_named"),
        (NoSums, "numbers_are_added_and_null_is_nothing"),
        (RoundedSums, "decimals_are_added_exactly"),
        (NoTidying, "of_a_task_that_ran_twice_the_rows_count_once"),
        (NewEachTime, "it_is_the_same_server_until_that_restarts"),
    ],
)
def test_a_database_that_does_something_wrong_is_found_out(
    wrong: type[SQLite], test: str, tmp_path: Path
) -> None:
    class Suite(RowsDatabaseConformance):
        def make_database(self) -> RowsDatabase:
            return wrong(f"{tmp_path}/shop.db")

    with pytest.raises(Exception, match="."):
        getattr(Suite(), f"test_{test}")()
