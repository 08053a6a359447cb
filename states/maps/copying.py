"""Copies a state to another place: all of its entries, then its control record.

"Copies" in docs/protocol.md says why nothing is lost or counted twice. A single value gets the key
of the new place, which may differ as Storm's default key does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from trident.states.control import UNFINISHED, ControlRecord
from trident.states.errors import CopyError, NoStateError, StaleBatchError, UnownedStateError
from trident.states.keys import encode_key
from trident.states.maps.stored_map import StoredMap
from trident.states.maps.transformed import Transform, TransformedEntries
from trident.states.serializers import JSONSerializer
from trident.states.table.table import Table

PASSES = 5
"""How often the two places are compared before the copy gives up."""


@dataclass(frozen=True)
class CopyProgress:
    """The number of the pass, the entries that it has compared, and all entries written so far.

    Pass 0 only calls the function that makes the entries, if there is one.
    """

    number: int
    entries: int
    written: int


@dataclass(frozen=True)
class Copied:
    """The result of a copy: the copied record, the number of entries, and how many of them were
    written or removed."""

    record: ControlRecord
    entries: int
    written: int


def copy_state(
    source: StoredMap,
    target: StoredMap,
    tell: Callable[[CopyProgress], object] = lambda _: None,
    *,
    transform: Transform | None = None,
) -> Copied:
    """Copy a state with its control record, so that its topology goes on in the new place.

    Each pass reads both places and writes the entries that differ. When a pass finds no difference
    the control record is put there. A call after a killed one goes on; a call after the end only
    compares. Runs in the process that calls, with a page of entries in its memory.

    Parameters
    ----------
    source, target : StoredMap
        States of one kind; the source over a store that lists its entries.
    tell : callable
        Called after each page, with a :class:`CopyProgress`.
    transform : callable, optional
        Makes the key and the value of the copy: ``transform(key, value)`` returns both, or None to
        leave the key out. The new key may depend on the old key only, and no two keys may become
        one. Called in this process, several times for an entry, and has to return the same each
        time. The source is read once more, before anything is written.

    Raises
    ------
    CopyError
        When the source moves on, because its topology runs; when the target has other entries, or
        can't be made equal to the source; when somebody else has written its control record
        meanwhile; when the kinds differ; when `transform` fails, two keys become one, or the
        target can't list its keys.
    NoStateError, UnfinishedCopyError, GivenBackError
        When there is no state to copy.
    SerializationError
        For a value that the target can't keep.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> counts, copy = (MemoryMapState.Factory(name).makeState() for name in ("old", "new"))
    >>> counts.beginCommit(1)
    >>> counts.multiPut([("dog",), ("cat",)], [2, 1])
    >>> counts.commit(1)
    >>> copied = copy_state(counts, copy)
    >>> copied.entries, copied.written, copied.record.committed
    (2, 2, 1)
    >>> copy.multiGet([("dog",)])
    [2]
    >>> other = MemoryMapState.Factory("by animal and place").makeState()
    >>> copy_state(counts, other, transform=lambda key, n: ((*key, "farm"), 10 * n)).written
    2
    >>> other.multiGet([("dog", "farm")])
    [20]
    """
    if source.kind is not target.kind:
        raise CopyError(
            f"the state to copy, {_place(source)}, keeps {source.kind.value} values, and "
            f"{_place(target)} was opened for {target.kind.value} ones",
            "Give both the same kind=, that of the topology.",
        )
    if not source.tables.reading.has_pages:
        raise CopyError(
            f"{_place(source)} lists no keys, so it can't be copied from there",
            "Count anew in the new place; it may be the target of a copy.",
        )
    record = source.control.expect()
    if record is None:
        raise NoStateError(source.backing.where, source.backing.prefix)
    source, target = source.as_kept(), target.as_kept()
    if transform is None:
        return _Copy(source, target, record, tell).run()
    if not target.tables.reading.has_pages:
        raise CopyError(
            f"{_place(target)} lists no keys, so what an earlier copy by another function has left "
            "there would not be found",
            "Copy to a store that lists them; from there, without a function, to this one.",
        )
    with closing(TransformedEntries(source, transform)) as entries:
        return _Copy(source, target, record, tell, entries).run()


class _Copy:
    def __init__(
        self,
        source: StoredMap,
        target: StoredMap,
        record: ControlRecord,
        tell: Callable[[CopyProgress], object],
        transformed: TransformedEntries | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._record = record
        self._marker = replace(record, log_id=UNFINISHED + record.log_id)
        self._tell = tell
        self._in_json = isinstance(source.serializer, JSONSerializer)
        self._renamed_keys = _renamed_keys(source, target)
        self._transformed = transformed
        self._written = 0
        self._suspects = "Something else"
        if transformed is not None:
            self._suspects = (
                "The function makes another entry than it made before: have it return the same for "
                "the same key and value, whenever it is called. Or something else"
            )

    def run(self) -> Copied:
        if self._transformed is not None:
            self._transform_all(self._transformed)
        stored = self._target.backing.getControl()
        if stored == self._record.encode():
            return self._compare()
        resumed = self._claim(stored)
        table = self._target.tables.writing
        table.begin(self._marker)
        try:
            if resumed:
                self._remove_extra(table, stored)
            entries, incarnation = self._write_all(table)
        except StaleBatchError as error:
            raise self._target_changed() from error
        self._check_source_unchanged()
        backing, record, marker = self._target.backing, self._record.encode(), self._marker.encode()
        if not backing.putControl(record, marker):
            raise self._target_changed()
        backing.flush()
        # A server that started anew since the last pass may have lost entries, and still have the
        # marker, which is older.
        if backing.incarnation() != incarnation:
            backing.putControl(marker, record)
            raise CopyError(
                f"the server of {_place(self._target)} started anew, or another took over, when "
                "the copy was about to end",
                "Copy again: it compares all entries once more.",
            )
        return Copied(self._record, entries, self._written)

    def _transform_all(self, transformed: TransformedEntries) -> None:
        """Make all entries once, to know each key and to find two that become one."""
        made = 0
        for page in transformed.pages():
            made += len(page)
            self._check_source_unchanged()
            self._tell(CopyProgress(0, made, 0))

    def _pages(self) -> Iterator[dict[bytes, Any]]:
        """Yield the entries that the target has to have, page by page."""
        pages: Iterable[dict[bytes, Any]] = map(dict, self._source.tables.reading.pages())
        if self._transformed is not None:
            pages = self._transformed.pages()
        for page in pages:
            yield {self._renamed_keys.get(key, key): entry for key, entry in page.items()}

    def _compare(self) -> Copied:
        """Check a finished copy; write nothing."""
        entries, differing = self._compare_all(1, None)
        if self._target.tables.reading.has_pages:
            extra = sum(map(len, self._extra_keys()))
            entries, differing = entries + extra, differing + extra
        if differing:
            raise CopyError(
                f"{_place(self._target)} has this state already, as of the same batch, but "
                f"{differing} of {entries} entries differ",
                f"{self._suspects} has written there: remove that state, or copy to another place.",
            )
        return Copied(self._record, entries, 0)

    def _claim(self, stored: bytes | None) -> bool:
        """Put the marker; return whether an earlier copy may have left entries."""
        found = None if stored is None else ControlRecord.decode(stored)
        resumed = found is not None and found.log_id == self._marker.log_id
        if found is None:
            self._check_vacant()
        elif not resumed and (found.log_id.startswith(UNFINISHED) or not found.is_unused):
            raise self._target_taken(found)
        if stored != self._marker.encode():
            if not self._target.backing.putControl(self._marker.encode(), stored):
                raise self._target_changed()
            self._target.backing.flush()
        return resumed

    def _check_vacant(self) -> None:
        """Refuse a target with entries and no control record, if the store can find them."""
        control, occupant = self._target.control, None
        try:
            control.check_vacant()
        except UnownedStateError as error:
            occupant = error.found
        if not control.can_look and self._target.tables.reading.has_pages:
            pages = self._target.backing.pages()
            occupant = next((f"the entry {key!r}" for page in pages for key, _ in page), None)
        if occupant is not None:
            raise CopyError(
                f"{_place(self._target)} is not empty: there is {occupant}, and no control record",
                "Remove the entries, or copy to another place.",
            )

    def _target_taken(self, found: ControlRecord) -> CopyError:
        advice = "Remove that state, or copy to another place."
        place, log_id = _place(self._target), found.log_id
        if log_id.startswith(UNFINISHED):
            what = f"{place} is an unfinished copy of another state, whose log id is "
            return CopyError(what + log_id.removeprefix(UNFINISHED), advice)
        if log_id != self._record.log_id:
            return CopyError(f"{place} has another state, whose log id is {log_id}", advice)
        what = (
            f"{place} has this state already, as of batch {found.committed}, and the one to copy "
            f"is as of batch {self._record.committed}"
        )
        return CopyError(what, advice)

    def _write_all(self, table: Table) -> tuple[int, str | None]:
        """Write the entries that differ until none does; return how many entries there are, and
        the incarnation of the server that has them."""
        for number in range(1, PASSES + 1):
            incarnation = self._target.backing.incarnation()
            entries, differing = self._compare_all(number, table)
            self._target.backing.flush()
            # A server that started anew may have lost acknowledged writes.
            if not differing and self._target.backing.incarnation() == incarnation:
                return entries, incarnation
        raise CopyError(
            f"{_place(self._target)} still differs from {_place(self._source)} after {PASSES} "
            "comparisons",
            f"{self._suspects} writes one of the two: stop it, and copy again. Or the new place "
            "keeps these values in another way: give it the same serializer=.",
        )

    def _compare_all(self, number: int, table: Table | None) -> tuple[int, int]:
        """Compare all entries, and write those that differ to `table`; count all, and those."""
        entries = differing = 0
        for page in self._pages():
            copied = dict(zip(page, self._target.tables.reading.read(list(page)), strict=True))
            wrong = [key for key, entry in copied.items() if entry is None]
            wrong += self._unequal_keys(page, copied)
            entries += len(page)
            differing += len(wrong)
            if wrong and table is not None:
                self._write(table, wrong, [page[key] for key in wrong])
            self._check_source_unchanged()
            self._tell(CopyProgress(number, entries, self._written))
        return entries, differing

    def _unequal_keys(self, page: dict[bytes, Any], copied: dict[bytes, Any]) -> list[bytes]:
        """Return the keys of entries that are in both places, and differ in a byte."""
        keys = [key for key, entry in copied.items() if entry is not None]
        ours, theirs = (
            self._source.kept_as.dumps([entries[key] for key in keys], self._source.serializer)
            for entries in (page, copied)
        )
        return [
            key
            for key, one, other in zip(keys, ours, theirs, strict=True)
            # Two equal sets may be pickled in two orders.
            if one != other and (self._in_json or page[key] != copied[key])
        ]

    def _write(self, table: Table, keys: Sequence[bytes], entries: Sequence[Any]) -> None:
        if table.refuses:
            table.read(keys)  # a write is compared with what was read
        refused = table.write(keys, entries)
        self._written += len(keys) - len(refused)  # the next pass finds what was refused

    def _remove_extra(self, table: Table, stored: bytes | None) -> None:
        """Remove entries of an earlier copy that the source no longer has."""
        if not self._target.tables.reading.has_pages:
            if stored != self._marker.encode() or not self._source_settled():
                raise CopyError(
                    f"the state {_place(self._source)} has moved on since its unfinished copy in "
                    f"{_place(self._target)} began, which can't list the entries to remove",
                    "Copy to another place, such as another prefix.",
                )
            return
        for keys in self._extra_keys():
            if not table.removes:
                raise CopyError(
                    f"the unfinished copy in {_place(self._target)} has {len(keys)} entries or "
                    f"more that {_place(self._source)} no longer has, and nothing removes them",
                    "Copy to another place, such as another prefix.",
                )
            table.remove(keys)
            self._written += len(keys)

    def _extra_keys(self) -> Iterator[Sequence[bytes]]:
        """Yield the keys of the target that the source doesn't have, page by page."""
        for page in self._target.tables.reading.pages():
            keys = list(dict(page))
            own = [self._renamed_keys.get(key, key) for key in keys]
            found: Sequence[Any]
            if self._transformed is None:
                found = self._source.tables.reading.read(own)
            else:
                found = self._transformed.sources(own)
            extra = [key for key, entry in zip(keys, found, strict=True) if entry is None]
            if extra:
                yield extra

    def _source_settled(self) -> bool:
        """Return whether no attempt may write under the source's control record."""
        record = self._record
        return record.committed >= record.token.txid or record.ready

    def _check_source_unchanged(self) -> None:
        found = self._source.control.read()
        if found == self._record:
            return
        now = "has lost its control record" if found is None else f"is at {_at(found)}"
        raise CopyError(
            f"the state {_place(self._source)} changed during the copy: it was at "
            f"{_at(self._record)} and {now}",
            "Stop the topology that updates it, and copy again: copied entries are kept.",
        )

    def _target_changed(self) -> CopyError:
        return CopyError(
            f"the control record of {_place(self._target)} changed during the copy",
            "Does another copy, or a topology, write there? Stop it, and copy again.",
        )


def _renamed_keys(source: StoredMap, target: StoredMap) -> Mapping[bytes, bytes]:
    """Return the old key of a single value by its new key, and the new one by the old one.

    Raises CopyError if the source has other entries too.
    """
    old, new = encode_key(source.key), encode_key(target.key)
    if old == new or source.tables.reading.read([old])[0] is None:
        return {}
    if any(key != old for page in source.tables.reading.pages() for key, _ in page):
        raise CopyError(
            f"{_place(source)} has entries beside that of the key {source.key[0]!r}, which is the "
            f"key of a single value there, and in {_place(target)} that is {target.key[0]!r}",
            f"Give the new place the key of the old one: snapshot_key={source.key[0]}",
        )
    return {old: new, new: old}


def _place(state: StoredMap) -> str:
    backing = state.backing
    prefix = f"{backing.prefix} in " if backing.prefix else ""
    return f"{prefix}{backing.where or 'its store'}"


def _at(record: ControlRecord) -> str:
    txid, attempt = record.token
    if record.committed >= txid:
        return f"batch {record.committed}"
    return f"attempt {attempt} of batch {txid}"
