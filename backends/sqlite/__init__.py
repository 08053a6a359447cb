"""State in a SQLite file: durable, embedded, the default; nothing to install or to run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trident.backends.sqlite.backing_map import SQLiteMap
from trident.backends.sqlite.tables import CATALOG, SQLiteTable
from trident.backends.state_url import StateURL
from trident.backends.store_checks import check_store
from trident.states.errors import UsageError
from trident.states.finding import Finding
from trident.states.maps.factory import MapStateFactory, other_kinds
from trident.states.serializers import JSONSerializer, Serializer
from trident.states.store import RoundTrips, Store
from trident.states.values import StateType

_TAKEN = (CATALOG, "json_each")  # a table of that name would hide the function we read with


@dataclass(frozen=True)
class SQLiteStore(Store):
    """One state in a SQLite file; several states, with different prefixes, may share the file.

    Pickles, and opens nothing until its map is used. The driver's process updates the state; any
    process of the same machine may query it meanwhile.

    Parameters
    ----------
    path : str or path
        The file; made at the first batch, in a folder that exists, on a local disk.
    prefix : str or None
        The name of the state's table, case-insensitive; None takes the name of the state.
    kind : StateType
        What the table keeps.
    serializer : Serializer
        For values other than int (of 64 bits), float, str and None, which have types in SQLite.
    patience : float
        Seconds to wait while another process is writing.

    Notes
    -----
    The file is in WAL mode. A write is atomic and survives the end of the process at once; it is
    forced to the disk once a batch, right before the batch is committed. So a loss of power can
    lose a batch that is not committed, and the announcement of one that is, which the next start
    repeats.

    Examples
    --------
    >>> store = SQLiteStore("counts.db").named("words")
    >>> store.prefix, store.hosted
    ('words', 'driver')
    """

    path: str
    prefix: str | None = None
    kind: StateType = StateType.OPAQUE
    serializer: Serializer = field(default_factory=JSONSerializer)
    patience: float = 5.0

    hosted = "driver"
    map_type = SQLiteMap
    calls = RoundTrips((0, 0), (0, 0))

    def __post_init__(self) -> None:
        path, name = os.fspath(self.path), self.own_name
        problems = {
            f"path {path!r} is no file; give the path of one, or use MemoryMapState for state that "
            "need not last": path in ("", ":memory:") or "\0" in path or not _can_be_a_file(path),
            f"prefix {name!r} can't name a table; allowed is any name but the empty one, "
            f"{', '.join(_TAKEN)} and those that start with sqlite_": (
                not name
                or "\0" in name
                or name.lower().startswith("sqlite_")
                or name.lower() in _TAKEN
            ),
        }
        check_store(self, problems)
        # A relative path must not depend on a process's folder.
        object.__setattr__(self, "path", os.path.abspath(path))

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells this state from others: ``("sqlite", file, table)``."""
        name = self.own_name.encode(errors="surrogatepass")
        # SQLite's names ignore the case of ASCII letters, as bytes.lower does.
        return "sqlite", os.path.realpath(self.path), name.lower().decode(errors="surrogatepass")

    def check_place(self) -> None:
        """Refuse a file whose folder is missing: no batch could ever make it."""
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            what = f"SQLite: for {os.path.basename(self.path)} there is no folder"
            raise UsageError(what, folder, (), "Make the folder, or give another path.")

    def examine(self) -> Iterator[Finding]:
        """Yield whether the file can be read and written; makes none."""
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            yield Finding("problem", f"{folder} is not a folder", "Make it, or give another path.")
            return
        written = [folder, *(each for each in [self.path] if os.path.exists(each))]
        for each in written:
            if not os.access(each, os.W_OK):
                advice = "This user must be able to write the file and its folder."
                yield Finding("problem", f"{each} can't be written", advice)
        opened = self.open()
        opened.getControl()
        opened.close()
        found = "can be read" if len(written) > 1 else "will be made at the first start"
        yield Finding("ok", f"{self.path} {found}")

    def open(self) -> SQLiteMap:
        """Return the map; the file is opened when the map is first used."""
        table = SQLiteTable(self.own_name, self.kind, self.serializer)
        return SQLiteMap(self.path, table, self.patience)


def opaque(
    path: str | os.PathLike[str], prefix: str | None = None, **options: Any
) -> MapStateFactory:
    """Return a factory of opaque map states in a SQLite file: exact with every source.

    Parameters
    ----------
    path, prefix
        See :class:`SQLiteStore`.
    options
        Its other parameters, and those of :class:`~trident.states.maps.factory.MapStateFactory`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from trident import Count
    >>> with TemporaryDirectory() as folder:
    ...     counts = opaque(f"{folder}/counts.db").makeState()
    ...     counts.beginCommit(1)
    ...     counts.multiFold([b"cat", b"dog"], [2, 1], Count())
    ...     counts.commit(1)
    ...     print(counts.multiGet([("cat",), ("cow",)]))
    ...     counts.close()
    [2, None]
    """
    given = {"path": path, "prefix": prefix, **options}
    return MapStateFactory.over(SQLiteStore, StateType.OPAQUE, given)


transactional, nonTransactional = other_kinds(opaque)


def from_url(url: StateURL) -> MapStateFactory:
    """Return the factory of ``sqlite:relative.db`` or ``sqlite:///folder/absolute.db``.

    Its own option is ``patience``, in seconds.

    Examples
    --------
    >>> from_url(StateURL.parse("sqlite:counts.db?patience=30")).store.patience
    30.0
    """
    return url.read(patience=float).factory(SQLiteStore, path=url.local_path())


def _can_be_a_file(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair, other than one that stands for a byte
        return False
    return True
