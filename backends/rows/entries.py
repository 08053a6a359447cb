"""The entries of the catalog, one a state: read, locked, and changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from trident.backends.rows.catalog import CATALOG, catalog
from trident.backends.rows.database import alchemy
from trident.backends.rows.pipeline import Pipeline
from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable, Row


class OvertakenError(Exception):
    """An entry is not as it was found: another driver has changed it."""


class Entry(NamedTuple):
    """A state in the catalog.

    Where it is `whole`, all rows of its batch were written in the transaction that put the record:
    they are there if that is.
    """

    name: str
    kept: str
    control: bytes | None
    parts: str | None
    whole: bool = False

    @property
    def record(self) -> ControlRecord | None:
        """The control record."""
        return None if self.control is None else ControlRecord.decode(self.control)

    @property
    def counted(self) -> Mapping[int, int]:
        """How many rows each task has written that counts.

        Raises
        ------
        CorruptStateError
            When it is none of this version.
        """
        try:
            told = orjson.loads(self.parts or "{}")
            return {int(part): int(rows) for part, rows in told.items()}
        except (ValueError, TypeError, AttributeError) as error:
            what = f"the parts of {self.name} in the table {CATALOG}"
            found = f"{str(self.parts)[:80]!r} ({error})"
            raise CorruptStateError(what, found, "Restore it from a backup.") from error


def entry_of(connection: Connection, name: str) -> Entry | None:
    """The entry of a state."""
    states = catalog()
    row = connection.execute(alchemy().select(states).where(states.c.name == name)).first()
    return None if row is None else _read(row)


def lock_entries(
    connection: Connection, records: Mapping[str, ControlRecord]
) -> Mapping[str, Entry]:
    """Lock and return the entries of states that get these records, and those that wait.

    Those of the same log wait whose committed batch was never announced: of states that the
    topology has lost, or has under another name now, and those of which a database has forgotten
    the announcement. They are looked for when something begins.
    """
    states = catalog()
    names = records.keys() | waiting_names(connection, next(iter(records.values())))
    # Locked in order, so that no two who change several records wait for each other.
    query = alchemy().select(states).where(states.c.name.in_(names)).order_by(states.c.name)
    return {row.name: _read(row) for row in connection.execute(query.with_for_update())}


def waiting_names(connection: Connection, new: ControlRecord) -> set[str]:
    """Return the names of states whose batch waits, where `new` begins one."""
    if new.ready or new.committed >= new.token.txid:
        return set()
    rows = connection.execute(alchemy().select(catalog()))
    records = {row.name: _read(row).record for row in rows}
    return {name for name, old in records.items() if old is not None and waits(old, new)}


def waits(old: ControlRecord, new: ControlRecord) -> bool:
    """Whether the batch of `old` is ready, and `new` says that this attempt of it is committed."""
    pending = old.ready and old.committed < old.token.txid
    return pending and old.log_id == new.log_id and new.is_committed(*old.token)


def replace_entry(pipeline: Pipeline, old: Entry, new: Entry) -> None:
    """Put an entry in the place of another; it raises OvertakenError where that has changed."""
    parameters = {"now": new.control, "how": new.kept, "who": new.parts, "state": old.name}
    if old.control is not None:
        parameters["before"] = old.control
    pipeline.add(_replacement(is_first=old.control is None), parameters, _check_replaced)


def _check_replaced(result: Any) -> None:
    if result.rowcount != 1:
        raise OvertakenError


@cache
def _replacement(*, is_first: bool) -> Executable:
    bind, table = alchemy().bindparam, catalog()
    states = table.c
    before = states.control.is_(None) if is_first else states.control == bind("before")
    replaced = table.update().where(states.name == bind("state"), before)
    values = {"control": bind("now"), "kept": bind("how"), "parts": bind("who")}
    return replaced.values(values)


def _read(row: Row[Any]) -> Entry:
    control = None if row.control is None else bytes(row.control)
    return Entry(row.name, row.kept, control, row.parts)
