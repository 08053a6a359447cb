"""Rows that a table refuses: told with all that is known of them, or put aside, and never half."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.backends.rows.conftest import DATABASES
from tests.backends.rows.databases import Place
from trident import GeneratorSpout, TridentTopology
from trident.backends.rows import RefusedRowError, Rows, TooManyBadRowsError, bad_rows
from trident.backends.rows.sqlite import SQLite
from trident.batch.errors import OutageError
from trident.batch.watchpoints import POINTS, watching
from trident.errors import FailedException, StateUnavailableError
from trident.spark.error_json import error_from_json, error_to_json
from trident.states.values import Token

SIZE = 5
FIELDS = "id long, n long, what string, seen long"
Tuple = tuple[Any, ...]


def good(n: int) -> Tuple:
    return n, n, f"w{n}", 100 + n


@dataclass(frozen=True)
class Refusal:
    """A table, a row that it refuses, and how to mend it so that it takes that row."""

    table: str
    bad: Callable[[int], Tuple]
    column: str | None = None
    before: Sequence[str] = ()
    after: Sequence[str] = ()


def postgres_trigger(body: str) -> Sequence[str]:
    """Make a trigger that looks at each row before it is inserted."""
    function = "CREATE FUNCTION {table}_f() RETURNS trigger LANGUAGE plpgsql AS"
    return (
        f"{function} $$ BEGIN {body} RETURN NEW; END $$",
        "CREATE TRIGGER {table}_t BEFORE INSERT ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION {table}_f()",
    )


COLUMNS = "id BIGINT PRIMARY KEY, n BIGINT, what VARCHAR(30)"
REFUSALS = {
    "null": Refusal(
        "id BIGINT PRIMARY KEY, n BIGINT NOT NULL, what VARCHAR(30)",
        lambda n: (n, None, "x", 100 + n),
        "n",
    ),
    "key": Refusal(COLUMNS, lambda n: (None, n, "x", 100 + n), "id"),
    "check": Refusal(f"{COLUMNS}, CHECK (n >= 0)", lambda n: (n, -1, "x", 100 + n)),
    "foreign key": Refusal(
        f"{COLUMNS}, FOREIGN KEY (n) REFERENCES {{table}}_parent (n)",
        lambda n: (n, 77, "x", 100 + n),
        before=(
            "CREATE TABLE {table}_parent (n BIGINT PRIMARY KEY)",
            "INSERT INTO {table}_parent VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
        ),
    ),
    "unique index": Refusal(
        COLUMNS,
        lambda n: (n, n, "taken", 100 + n),
        after=(
            "CREATE UNIQUE INDEX {table}_what ON {table} (what)",
            "INSERT INTO {table} VALUES (1000, 0, 'taken')",
        ),
    ),
}
ONLY = {
    "sqlite": {
        "trigger": Refusal(
            COLUMNS,
            lambda n: (n, 13, "x", 100 + n),
            after=(
                "CREATE TRIGGER {table}_t BEFORE INSERT ON {table} WHEN NEW.n = 13 "
                "BEGIN SELECT RAISE(ABORT, 'not thirteen'); END",
            ),
        ),
        "foreign key at the commit": Refusal(
            f"{COLUMNS}, FOREIGN KEY (n) REFERENCES {{table}} (id) DEFERRABLE INITIALLY DEFERRED",
            lambda n: (n, 77, "x", 100 + n),
        ),
    },
    "postgres": {
        "length": Refusal(
            "id BIGINT PRIMARY KEY, n BIGINT, what VARCHAR(3)",
            lambda n: (n, n, "long", 100 + n),
            "what",
        ),
        "NUL": Refusal(
            "id BIGINT PRIMARY KEY, n BIGINT, what TEXT", lambda n: (n, n, "a\0b", 100 + n)
        ),
        "trigger": Refusal(
            COLUMNS,
            lambda n: (n, 13, "x", 100 + n),
            after=postgres_trigger("IF NEW.n = 13 THEN RAISE EXCEPTION 'not thirteen'; END IF;"),
        ),
        "trigger with a code of its own": Refusal(
            COLUMNS,
            lambda n: (n, 13, "x", 100 + n),
            after=postgres_trigger(
                "IF NEW.n = 13 THEN RAISE 'no' USING ERRCODE = 'AB123'; END IF;"
            ),
        ),
        "assertion of a trigger": Refusal(
            COLUMNS,
            lambda n: (n, 13, "x", 100 + n),
            after=postgres_trigger("ASSERT NEW.n <> 13;"),
        ),
        "foreign key at the commit": Refusal(
            f"{COLUMNS}, FOREIGN KEY (n) REFERENCES {{table}} (id) DEFERRABLE INITIALLY DEFERRED",
            lambda n: (n, 77, "x", 100 + n),
        ),
    },
    "mariadb": {
        "length": Refusal(
            "id BIGINT PRIMARY KEY, n BIGINT, what VARCHAR(3)",
            lambda n: (n, n, "long", 100 + n),
            "what",
        ),
        "trigger": Refusal(
            COLUMNS,
            lambda n: (n, 13, "x", 100 + n),
            after=(
                "CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW "
                "BEGIN IF NEW.n = 13 THEN SIGNAL SQLSTATE '45000' "
                "SET MESSAGE_TEXT = 'not thirteen'; END IF; END",
            ),
        ),
    },
}
EACH_KIND = [
    pytest.param(database, kind, id=f"{database}-{kind}")
    for database in DATABASES
    for kind in (*REFUSALS, *ONLY[database])
]
each_kind = pytest.mark.parametrize(("place", "kind"), EACH_KIND, indirect=["place"])


def refusal(place: Place, kind: str) -> Refusal:
    """What this kind of refusal is in the database, with the table made."""
    database = {"postgresql": "postgres", "mysql": "mariadb"}.get(place.rows().database.name)
    found = {**REFUSALS, **ONLY[database or "sqlite"]}[kind]
    for statement in (*found.before, f"CREATE TABLE {{table}} ({found.table})", *found.after):
        place.execute(statement)
    return found


def write(
    place: Place,
    checkpoint: Path,
    make: Callable[[int], Tuple],
    *others: Place,
    batches: int = 1,
    **options: Any,
) -> None:
    """Write tuples of the fields, in batches of `SIZE`; `seen` is not stored."""
    spout = GeneratorSpout(FIELDS, make, batch=SIZE, total=SIZE * batches)
    topology = TridentTopology()
    tuples = topology.newStream("tuples", spout)
    for each in (place, *others):
        tuples.partitionPersist(each.rows("id", columns={"seen": None}, **options))
    with topology.start(checkpoint=checkpoint, trigger="available") as run:
        run.awaitTermination()


def put_aside(place: Place) -> list[tuple[int, str, dict[str, Any], str]]:
    """The batch, the reason, the row and its source, of each bad row of the table."""
    found = place.query(
        "SELECT txid, reason, row_json, source FROM trident_bad_rows "
        "WHERE state = '{table}' ORDER BY id"
    )
    return [(txid, reason, json.loads(row), source) for txid, reason, row, source in found]


@each_kind
def test_a_refused_row_is_named_and_nothing_of_its_batch_is_there(
    place: Place, tmp_path: Path, kind: str
) -> None:
    told = refusal(place, kind)
    before = place.found()
    with pytest.raises(RefusedRowError) as raised:
        write(place, tmp_path / "log", lambda n: told.bad(n) if n == 2 else good(n))
    error, bad = raised.value, told.bad(2)
    assert error.row == f"id={bad[0]}, n={bad[1]}, what={bad[2]!r}".replace("\0", "\\u0000")
    assert error.column == told.column
    assert error.table == f"the table {place.table} in {place.rows().database}"
    assert error.reason
    assert error.position.startswith("batch 1, attempt 0, seen=")
    assert "trident_" not in error.reason
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error_from_json(error_to_json(error))) == str(error)
    assert place.found() == before
    write(place, tmp_path / "log", good, batches=2)  # what comes instead of it
    assert place.column("id") == sorted([*range(10), *(row[0] for row in before)])


@each_kind
def test_a_refused_row_is_put_aside_and_the_others_are_there(
    place: Place, tmp_path: Path, kind: str
) -> None:
    told = refusal(place, kind)
    before = place.found()

    def make(n: int) -> Tuple:
        return told.bad(n) if n in (1, 5, 7, 8) else good(n)

    write(place, tmp_path / "log", make, batches=2, on_bad_row="dead-letter")
    assert place.found("id, n, what") == sorted(
        [*before, *(good(n)[:3] for n in (0, 2, 3, 4, 6, 9))], key=repr
    )
    for (txid, reason, row, source), n in zip(put_aside(place), (1, 5, 7, 8), strict=True):
        assert (txid, source) == (1 + n // SIZE, f"seen={100 + n}, origin=tuples")
        assert list(row.values()) == list(told.bad(n)[:3])
        assert reason.startswith(f"column {told.column}: " if told.column else "")
        assert "trident_" not in reason
    assert not place.left()


@pytest.mark.parametrize(
    ("kind", "bad"),
    [("check", {0}), ("check", {SIZE - 1}), ("check", {*range(SIZE)}), ("key", {*range(SIZE)})],
)
def test_first_and_last_rows_and_all_are_found(
    place: Place, tmp_path: Path, kind: str, bad: set[int]
) -> None:
    told = refusal(place, kind)

    def make(n: int) -> Tuple:
        return told.bad(n) if n in bad else good(n)

    with pytest.raises(RefusedRowError) as raised:
        write(place, tmp_path / "fails", make)
    assert f"what={told.bad(min(bad))[2]!r}" in raised.value.row
    assert raised.value.row.startswith(f"id={told.bad(min(bad))[0]}")
    write(place, tmp_path / "fails", make, on_bad_row="dead-letter")
    assert place.column("id") == sorted({*range(SIZE)} - bad)
    assert [source for *_, source in put_aside(place)] == [
        f"seen={100 + n}, origin=tuples" for n in sorted(bad)
    ]


def test_a_table_that_is_mended_takes_the_row_at_the_next_start(
    place: Place, tmp_path: Path
) -> None:
    told = refusal(place, "foreign key")
    with pytest.raises(RefusedRowError):
        write(place, tmp_path / "log", told.bad)
    place.execute("INSERT INTO {table}_parent VALUES (77)")
    write(place, tmp_path / "log", told.bad)
    assert place.column("id") == [*range(SIZE)]


@pytest.mark.parametrize("mode", ["fail", "dead-letter"])
def test_what_is_refused_only_after_the_commit_is_told_or_put_aside_at_the_next_start(
    place: Place, tmp_path: Path, mode: str
) -> None:
    refusal(place, "foreign key")

    def end(point: str, token: Token) -> None:
        if point == "before announce":
            raise KeyboardInterrupt

    with watching(end), pytest.raises(KeyboardInterrupt):
        write(place, tmp_path / "log", good, on_bad_row=mode)
    place.execute("DELETE FROM {table}_parent WHERE n = 3")
    if mode == "fail":
        with pytest.raises(RefusedRowError, match="id=3"):
            write(place, tmp_path / "log", good)
        assert place.found() == []
        place.execute("INSERT INTO {table}_parent VALUES (3)")
    write(place, tmp_path / "log", good)  # how it was to be merged is kept with the batch
    bad = [] if mode == "fail" else put_aside(place)
    assert [row["id"] for _, _, row, _ in bad] == [3] * len(bad)
    assert len(place.found()) + len(bad) == SIZE


@pytest.mark.parametrize(
    "point", ["after write", "before commit", "after commit", "after announce"]
)
def test_bad_rows_are_put_aside_once_wherever_a_batch_ends(
    place: Place, tmp_path: Path, point: str
) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT CHECK (n >= 0), run INT)")
    ends: list[BaseException] = [FailedException("again"), KeyboardInterrupt()]
    seen: list[Tuple] = []

    def look_and_end(reached: str, token: Token) -> None:
        if reached == point and token.txid == 2 and ends:
            seen.append((place.column("id"), len(put_aside(place))))
            if POINTS.index(point) > POINTS.index("before commit"):
                ends.clear()
                raise KeyboardInterrupt
            raise ends.pop(0)

    def run(salt: int) -> None:
        spout = GeneratorSpout(
            "id long, n long, run int",
            lambda n: ({1: None}.get(n % 4, n), {2: -1}.get(n % 4, n), salt),
            batch=8,
            total=24,
        )
        topology = TridentTopology()
        rows = place.rows("id", on_bad_row="dead-letter")
        topology.newStream("numbers", spout).partitionPersist(rows)
        with topology.start(checkpoint=tmp_path, trigger="available") as started:
            started.awaitTermination()

    with watching(look_and_end), pytest.raises(KeyboardInterrupt):
        run(1)
    run(2)
    assert place.column("id") == [n for n in range(24) if n % 4 in (0, 3)]
    bad = put_aside(place)
    assert [row["id"] or row["n"] for _, _, row, _ in bad] == [
        n for n in range(24) if n % 4 in (1, 2)
    ]
    assert not place.left()
    old = 16 if POINTS.index(point) > POINTS.index("before commit") else 8
    assert {run for n, run in place.found("id, run") if n < old} == {1}
    assert {run for n, run in place.found("id, run") if n >= old} == {2}
    assert [row["run"] for _, _, row, _ in bad] == [1] * (old // 2) + [2] * (12 - old // 2)
    visible = 2 if point == "after announce" else 1
    assert {*map(str, seen)} == {str((place.column("id")[: 4 * visible], 4 * visible))}


@pytest.mark.parametrize("second", ["the same", "another"])
def test_of_two_tables_none_has_a_batch_that_one_refuses(
    place: Place, tmp_path: Path, second: str
) -> None:
    told = refusal(place, "check")
    other = place.beside("z")
    if second == "another":
        other = Place(f"sqlite:{tmp_path}/other.db", "z")
    with pytest.raises(RefusedRowError):
        write(
            place, tmp_path / "log", lambda n: told.bad(n) if n == 7 else good(n), other, batches=2
        )
    assert place.column("id") == other.column("id") == [*range(5)]
    write(place, tmp_path / "log", good, other, batches=2)
    assert place.column("id") == other.column("id") == [*range(10)]


def test_more_bad_rows_than_are_put_aside_stop_the_run(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_rows, "MOST", 3)
    for kind in ("key", "check"):
        told = refusal(place, kind)
        with pytest.raises(TooManyBadRowsError, match="more than 3 rows of one batch"):
            write(place, tmp_path / "log", told.bad, on_bad_row="dead-letter")
        assert place.found() == put_aside(place) == []
        place.execute("DROP TABLE {table}")


MODES: dict[str, tuple[str, dict[str, Any], Tuple]] = {
    "append": ("CHECK (n >= 0)", {"key": None}, (2, -1, "x", 2)),
    "add": (
        "CHECK (n < 100)",
        {"mode": "add", "columns": {"what": None, "seen": None}},
        (2, 998, "x", 2),
    ),
    "order": ("CHECK (n >= 0)", {"order_by": "seen"}, (2, -1, "x", 2)),
    "delete": ("UNIQUE (n)", {"delete_where": "what"}, (2, None, "d", 2)),
}


@pytest.mark.parametrize("mode", MODES)
def test_a_refused_row_is_found_in_each_mode(place: Place, tmp_path: Path, mode: str) -> None:
    checked, options, bad = MODES[mode]
    options = {"key": "id", "columns": {"what": None, "seen": None}, **options}
    place.execute(f"CREATE TABLE {{table}} (id BIGINT PRIMARY KEY, n BIGINT, {checked})")
    place.execute("INSERT INTO {table} VALUES (1, 1), (2, 2)")
    if mode == "append":
        place.execute("DELETE FROM {table}")
    place.execute(
        "CREATE TABLE {table}_child (id BIGINT, FOREIGN KEY (id) REFERENCES {table} (id))"
    )
    if mode == "delete":
        place.execute("INSERT INTO {table}_child VALUES (2)")
    before = place.found()

    def write_five(on_bad_row: str) -> None:
        spout = GeneratorSpout(FIELDS, lambda n: bad if n == 2 else good(n), batch=SIZE, total=SIZE)
        topology = TridentTopology()
        rows = place.rows(on_bad_row=on_bad_row, **options)
        topology.newStream("tuples", spout).partitionPersist(rows)
        with topology.start(checkpoint=tmp_path / "log", trigger="available") as run:
            run.awaitTermination()

    with pytest.raises(RefusedRowError) as raised:
        write_five("fail")
    assert raised.value.row.startswith(f"id=2, n={bad[1]}")
    assert place.found() == before
    write_five("dead-letter")
    assert len(put_aside(place)) == 1
    ones = {"add": 2}.get(mode, 1)
    expected = [(0, 0), (1, ones), (2, 2), (3, 3), (4, 4)]
    assert place.found() == [row for row in expected if row[0] != 2 or before]


def test_a_bad_last_row_of_a_key_leaves_the_place_to_the_one_before(
    place: Place, tmp_path: Path
) -> None:
    refusal(place, "check")
    given = {0: (1, 5, "a", 1), 1: (1, -1, "b", 3), 2: (1, 6, "c", 2), 3: (1, -2, "d", 4)}
    options = {"order_by": "seen", "on_bad_row": "dead-letter"}
    write(place, tmp_path / "log", lambda n: given.get(n, good(n)), **options)
    assert place.found() == [(1, 6, "c"), (4, 4, "w4")]
    assert [row["what"] for _, _, row, _ in put_aside(place)] == ["b", "d"]


def test_a_row_that_refers_to_a_later_one_of_its_batch_is_not_bad(
    place: Place, tmp_path: Path
) -> None:
    place.execute(
        "CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT, what VARCHAR(9), "
        "FOREIGN KEY (n) REFERENCES {table} (id))"
    )
    refers = {0: 4, 1: 77, 2: None, 3: 3, 4: None}
    write(place, tmp_path / "log", lambda n: (n, refers[n], "x", n), on_bad_row="dead-letter")
    assert place.column("id") == [0, 2, 3, 4]
    assert [row["n"] for _, _, row, _ in put_aside(place)] == [77]


def test_values_of_others_are_told_in_a_line_and_not_too_long(place: Place, tmp_path: Path) -> None:
    odd = "\x1b[2J\nDROP TABLE\u202e" + "\U0001f44d" * 5000
    with pytest.raises(RefusedRowError) as raised:
        write(place, tmp_path / "log", lambda n: (None, n, odd, n))
    told = str(raised.value)
    assert len(told) < 1500
    assert "\x1b" not in told
    assert "\n" not in told
    write(place, tmp_path / "log", lambda n: (n or None, n, odd, n), on_bad_row="dead-letter")
    [(_, reason, row, _)] = put_aside(place)
    assert row["what"] == odd
    assert reason.isascii()


def test_what_ends_the_transaction_is_told_and_not_that_a_savepoint_is_gone(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Deadlocked(SQLite):
        def load(self, connection: Any, staging: Any, rows: Any) -> None:
            if rows.num_rows == 1:
                connection.exec_driver_sql("ROLLBACK")
                raise StateUnavailableError(str(self), "deadlock")
            raise RefusedRowError(str(self), "bad")

    topology = TridentTopology()
    spout = GeneratorSpout(FIELDS, good, batch=SIZE, total=SIZE)
    rows = Rows(Deadlocked(f"{tmp_path}/shop.db"), "t", "id")
    topology.newStream("tuples", spout).partitionPersist(rows)
    run = topology.start(trigger="available", patience=0)
    with run, pytest.raises(OutageError, match="deadlock"):
        run.awaitTermination()


def test_a_trigger_that_rolls_back_the_whole_transaction_is_quoted(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    place.execute(f"CREATE TABLE {{table}} ({COLUMNS})")
    place.execute(
        "CREATE TRIGGER {table}_t BEFORE INSERT ON {table} WHEN NEW.n = 3 "
        "BEGIN SELECT RAISE(ROLLBACK, 'not three'); END"
    )
    with pytest.raises(RefusedRowError, match="not three. Nothing of the batch"):
        write(place, tmp_path / "log", good)
    assert place.found() == []
