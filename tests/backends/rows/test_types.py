"""Values of each type, in a table that was made for them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy

from tests.backends.rows.databases import Place
from trident import FixedBatchSpout, TridentTopology
from trident.backends.rows.urls import database_from_url

MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789012)
VALUES: dict[str, Any] = {
    "long": -(2**63),
    "int": 2**31 - 1,
    "short": -(2**15),
    "byte": 127,
    "double": 0.1,
    "float": 0.5,
    "decimal(9,2)": Decimal("1234567.89"),
    "boolean": True,
    "binary": b"\0\xff",
    "date": date(1969, 12, 31),
    "timestamp": MOMENT.replace(tzinfo=timezone(timedelta(hours=5))),
    "timestamp_ntz": MOMENT,
    "string": "\\N\t\n' \N{SNOWMAN}\N{PILE OF POO}",
    "varchar(3)": "abc",
}


@pytest.mark.filterwarnings("ignore:Dialect sqlite")
def test_values_of_each_type_are_in_the_table_as_they_were(place: Place) -> None:
    fields = ", ".join(f"f{at} {kind}" for at, kind in enumerate(VALUES))
    spout = FixedBatchSpout(fields, 2, list(VALUES.values()), [None] * len(VALUES))
    topology = TridentTopology()
    topology.newStream("rows", spout).partitionPersist(place.rows())
    with topology.start(trigger="available") as run:
        run.awaitTermination()
    with database_from_url(place.url).engine.connect() as connection:
        table = sqlalchemy.Table(place.table, sqlalchemy.MetaData(), autoload_with=connection)
        whole, empty = sorted(
            connection.execute(sqlalchemy.select(table)), key=lambda r: r[0] is None
        )
    found = dict(zip(VALUES, whole, strict=True))
    moment = found["timestamp"]
    if moment.tzinfo is None:
        found["timestamp"] = moment.replace(tzinfo=UTC)
    found["double"] = float(found["double"])  # MySQL's is read as a decimal
    assert found == VALUES
    assert {*empty} == {None}
