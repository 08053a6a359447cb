"""The backing map over one column of an HBase table: a row for each key, a cell for its value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trident.backends.hbase.connections import reading_rows, thrift
from trident.backends.hbase.family import Family
from trident.states.asking import Reading, finish_read
from trident.states.backing_map import Range, ReadingMap, between
from trident.states.errors import SerializationError
from trident.states.keys import CONTROL_KEY

_EMPTY = b'\0[""]'
"""The row of the key ("",): HBase has no empty row, and no key encodes to this."""
_FIRST_VERSION = 2**62
_SERVERS_TIME = 2**63 - 1
"""HBase replaces this timestamp by the time at which the write arrives."""
# With 500 to 2000 rows in a message a row takes the same time; with 10,000, ten times as long.
_ROWS = 1000
_BYTES = 8 * 2**20


class HBaseMap(ReadingMap):
    """A column of a table, as a map of encoded keys and bytes; other columns stay untouched.

    Any thread of any process may use it, each call through a connection of the process; calls are
    never repeated. Pickles. Raises SerializationError for a key that is too long for a row.

    A cell's timestamp is its version. HBase shows a row's cell with the highest timestamp, and of
    several with the same timestamp the last that was written. So a late write never shows. Until
    HBase compacts the table, a deletion also hides later writes up to its timestamp. So only what
    has expired is ever deleted.
    """

    def __init__(self, family: Family, qualifier: str) -> None:
        self.where = str(family.gateway)
        self.prefix = qualifier
        self._family = family
        self._table = family.table.encode()
        self._column = f"{family.name}:{qualifier}".encode()
        # A row is looked up under its table's name, a comma, and itself, a comma and 14 digits.
        self._longest = 2**15 - 1 - len(self._table) - 16

    def _read(self, keys: Sequence[bytes]) -> Reading[list[bytes | None]]:
        rows = self._rows(keys)
        cells = yield from self._reading_cells(rows)
        found = {row: cell.value for row, cell in cells.items()}
        return list(map(found.get, rows))

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Store `values` so that they show: at the servers' time, or at the newest version."""
        rows = self._rows(keys)
        cells = finish_read(self._reading_cells(rows)).values()
        newest = max((cell.timestamp for cell in cells), default=0)
        self._put(rows, values, newest if newest >= _FIRST_VERSION else _SERVERS_TIME)

    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        self._put(self._rows(keys), values, version)

    def multiRemoveUpTo(self, keys: Sequence[bytes], version: int) -> None:
        deletion = thrift().Mutation(True, self._column)
        deletions = [thrift().BatchMutation(row, [deletion]) for row in self._rows(keys)]
        with self._family.prepared_client() as client:
            for start in range(0, len(deletions), _ROWS):
                client.mutateRowsTs(self._table, deletions[start : start + _ROWS], version, {})

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        # The server gives the cell its own time, but no earlier one than that of the old cell.
        put = thrift().Mutation(column=self._column, value=new)
        with self._family.prepared_client() as client:
            replaced: bool = client.checkAndPut(
                self._table, CONTROL_KEY, self._column, expected, put, {}
            )
        return replaced

    def occupant(self) -> str | None:
        with self._family.prepared_client() as client:
            scanner = client.scannerOpen(self._table, b"", [self._column], {})
            rows = [found.row for found in client.scannerGetList(scanner, 2)]
            client.scannerClose(scanner)
        return next((f"the row {row!r}" for row in rows if row != CONTROL_KEY), None)

    def pages(self, part: Range = (None, None)) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield entries in the order of rows; a part begins with its first row and ends before its
        second."""
        start, stop = part[0] or b"", part[1]
        while True:
            # A server closes a scanner that is not used for a minute.
            with self._family.prepared_client() as client:
                if stop is None:
                    scanner = client.scannerOpen(self._table, start, [self._column], {})
                else:
                    columns = [self._column]
                    scanner = client.scannerOpenWithStop(self._table, start, stop, columns, {})
                found = client.scannerGetList(scanner, _ROWS)
                client.scannerClose(scanner)
            if not found:
                return
            start = found[-1].row + b"\0"  # the next possible row
            yield [
                (b"" if each.row == _EMPTY else each.row, each.columns[self._column].value)
                for each in found
                if each.row != CONTROL_KEY
            ]

    def prefixes(self) -> list[str]:
        start = f"{self._family.name}:".encode()
        with self._family.prepared_client() as client:
            rows = client.getRowWithColumns(self._table, CONTROL_KEY, [start[:-1]], {})
        columns = sorted(column for row in rows for column in row.columns)
        return [column.removeprefix(start).decode(errors="replace") for column in columns]

    def parts(self, count: int) -> list[Range]:
        """Return the regions of the table, whatever `count` is."""
        # A region's row is the table, its first row, and when it was made.
        lead = len(self._table) + 1
        starts = {row[lead:].rpartition(b",")[0] for row, _ in self._regions()}
        return between(sorted(starts - {b""}))

    def incarnation(self) -> str:
        """Return which region servers serve the table, and when they were started."""
        return repr(sorted({server for _, server in self._regions()}))

    def _regions(self) -> list[tuple[bytes, tuple[bytes, ...]]]:
        """Return each region's row in hbase:meta, with its server and when that was started."""
        columns = [b"info:server", b"info:serverstartcode"]
        found: list[tuple[bytes, tuple[bytes, ...]]] = []
        with self._family.prepared_client() as client:
            # From the table's first region to the first of any name after the table's
            first, end = self._table + b",,", self._table + b"\0,,"
            scanner = client.scannerOpenWithStop(b"hbase:meta", first, end, columns, {})
            while regions := client.scannerGetList(scanner, _ROWS):
                for each in regions:
                    server = [each.columns[name].value for name in columns if name in each.columns]
                    found.append((each.row, tuple(server)))
            client.scannerClose(scanner)
        return found

    def _rows(self, keys: Sequence[bytes]) -> list[bytes]:
        longest = max(map(len, keys), default=0)
        if longest > self._longest:
            raise SerializationError(
                "key",
                f"one of {longest:,} bytes",
                f"Rows of this table have at most {self._longest:,}: shorten the key, for "
                "example to a hash of its text.",
            )
        return [key or _EMPTY for key in keys]

    def _reading_cells(self, rows: Sequence[bytes]) -> Reading[dict[bytes, Any]]:
        cells: dict[bytes, Any] = {}
        if not rows:
            return cells
        columns = [self._column]
        with self._family.prepared_client() as client:
            for start in range(0, len(rows), _ROWS):
                asked = rows[start : start + _ROWS]
                for found in (yield from reading_rows(client, self._table, asked, columns)):
                    cells[found.row] = found.columns[self._column]
        return cells

    def _put(self, rows: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        if not rows:
            return
        mutation, of_row, column = thrift().Mutation, thrift().BatchMutation, self._column
        size = max(1, min(_ROWS, _BYTES // (max(map(len, values)) + 1)))
        with self._family.prepared_client() as client:
            for start in range(0, len(rows), size):
                end = start + size
                puts = [
                    of_row(row, [mutation(False, column, value)])
                    for row, value in zip(rows[start:end], values[start:end], strict=True)
                ]
                client.mutateRowsTs(self._table, puts, version, {})
