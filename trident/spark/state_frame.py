"""A state as a DataFrame: each task reads a part of its keys, all as of one committed batch.

Spark runs the tasks when the frame is made, and keeps the rows: only when the last task has ended
is it known that all have read one batch. A source that is read at each action, as a Python data
source of Spark 4's would be, could not begin anew, and would be of another batch each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trident.errors import EmittedValueError, described
from trident.spark.access import access_to, checkpoint_frame
from trident.spark.error_transfer import error_to_show, stage_errors
from trident.spark.quiet import TASKS, Quiet
from trident.spark.schemas import Schema, Schemas, create_frame, quote
from trident.spark.seal import Seal
from trident.spark.stage import UNFIT
from trident.spark.workers import check_workers
from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.errors import StateError, StateUnavailableError, UsageError
from trident.states.keys import decode_key
from trident.states.map_state import Key
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.parts import read_part
from trident.states.maps.stored_map import StoredMap
from trident.tuples.fields import Fields
from trident.tuples.value_types import conform, kind_of

_MOVED = "__trident_moved"
"""The column by which a task says that batches have moved on, in a row of its own."""
_TRIES = 4
"""How often a read begins, where batches move on."""
_LOOKED_AT = 1000
"""The least number of values that the types of columns are found by."""


def frame_of_state(
    session: SparkSession, factory: MapStateFactory, columns: Fields | None, partitions: int | None
) -> DataFrame:
    """The keys of a state and their values; see :func:`trident.states_frame`."""
    with closing(factory.makeMap()) as state:
        if not state.tables.reading.has_pages:
            what = f"{_place(state)} lists no keys, so it can't be read as a DataFrame"
            raise StateError(f"{what}. Ask it for keys that you know, by multiGet.")
    access, seal = access_to(session), Seal()
    fields: Fields | None = None
    for number in range(2 * _TRIES):
        place = factory.located()
        with closing(place.makeMap()) as state:
            if fields is None:
                fields = _find_types(state, columns)
                types = {name: str(kind) for name, kind in fields.types.items()}
                schema = Schemas(session).of({**types, _MOVED: "boolean"})
            # What is in this process, or on its machine, is not found from others.
            alone = not state.backing.lasts
            alone = alone or (place.store.hosted == "driver" and not access.is_local)
            here = alone or (number >= _TRIES and state.snapshots)
            if not here and number >= _TRIES:
                continue
            with suppress(BatchMovedOn), state.snapshot() if here else nullcontext():
                parts = state.backing.parts(1 if here else partitions or access.parallelism)
                record = state.control.ask()()
                reader = _PartReader(place, record, parts, fields, schema, seal)
                if here:
                    table = pa.Table.from_batches(reader.batches(state, parts[0]), schema.arrow)
                    return reader.label(create_frame(session, table, schema.struct))
                frame = _read_in_tasks(session, reader)
                if frame is not None:
                    return reader.label(frame)
    raise StateUnavailableError(
        _place(state),
        f"batches moved on during all {_TRIES} tries to read it as a DataFrame",
        "An opaque state can be read while one batch is under way, another one between two. Read "
        "it when the topology is stopped or its batches take longer, or with more partitions=; or "
        "keep it in PostgreSQL or SQLite, which can be read as of one moment.",
    )


def _read_in_tasks(session: SparkSession, reader: _PartReader) -> DataFrame | None:
    """The rows, which Spark keeps; None where batches have moved on meanwhile."""
    check_workers(session)
    count = len(reader.parts)
    frame = session.range(0, count, 1, count).mapInArrow(reader, reader.schema.struct)
    try:
        with Quiet(session, *TASKS):
            rows = checkpoint_frame(frame)
            moved = rows.where(F.col(_MOVED)).select(_MOVED).limit(1).collect()
    except Exception as error:
        raise error_to_show(error, reader.seal, "read") from error
    if not moved:
        return rows
    access_to(session).release(rows)
    return None


def _place(state: StoredMap) -> str:
    return f"the state {state.backing.prefix or ''} in {state.backing.where or 'its store'}"


@dataclass(frozen=True)
class _PartReader:
    """Reads parts of a state in a task, which has a row with the number of each; pickled to it.

    The columns of `fields` are those of the key, and last the value's.
    """

    factory: MapStateFactory
    record: ControlRecord | None
    parts: Sequence[Any]
    fields: Fields
    schema: Schema
    seal: Seal

    def __call__(self, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with stage_errors(self.seal):
            # All of its input first: Spark ends a worker that leaves some.
            numbers = [row.as_py() for batch in given for row in batch.column(0)]
            try:
                with closing(self.factory.makeMap()) as state:
                    for number in numbers:
                        yield from self.batches(state, self.parts[number])
            except BatchMovedOn:
                # An error would end the worker, and the next try would wait for another one.
                *others, last = self.schema.arrow
                row = [*(pa.nulls(1, field.type) for field in others), pa.array([True], last.type)]
                yield pa.RecordBatch.from_arrays(row, schema=self.schema.arrow)

    def batches(self, state: StoredMap, part: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        width = len(self.fields) - 1
        for keys, values in read_part(state, self.record, part):
            for key in keys:
                if len(key) != width and (width or key != tuple(state.key)):
                    what = f"{_place(state)} has the key {described(key)}, and schema= is for"
                    raise UsageError(f"{what} keys of {width} fields, then the value")
            if keys:
                columns = [*(zip(*keys, strict=True) if width else ()), values]
                arrays = [
                    self._array(state, name, column, keys)
                    for name, column in zip(self.fields, columns, strict=True)
                ]
                arrays.append(pa.nulls(len(keys), self.schema.arrow.field(_MOVED).type))
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema.arrow)

    def label(self, frame: DataFrame) -> DataFrame:
        """Return the rows as a frame whose last column names its batch in the metadata."""
        txid = 0 if self.record is None else self.record.committed
        *keys, value = [F.col(quote(name)) for name in self.fields.names]
        return frame.select(*keys, value.alias(self.fields.names[-1], metadata={"txid": txid}))

    def _array(
        self, state: StoredMap, name: str, values: Sequence[Any], keys: Sequence[Key]
    ) -> pa.Array:
        kind, own = str(self.fields.types[name]), self.schema.arrow.field(name).type
        try:
            return pa.array(conform("", name, kind, values), own)
        except (EmittedValueError, *UNFIT):
            if len(values) > 1:
                for key, value in zip(keys, values, strict=True):
                    self._array(state, name, [value], [key])
                raise  # each by itself would do: over 2 GB of text
            what = f"{_place(state)}: {described(values[0])} is no {kind}, the type of the column "
            what += f"{name!r}, in the entry of the key {described(keys[0])}"
            raise UsageError(what, "", (), "Declare another type: schema=.") from None


def _find_types(state: StoredMap, columns: Fields | None) -> Fields:
    """The columns with their types; those of some values where none are declared."""
    record = state.control.ask()()
    if columns is not None and None not in columns.types.values():
        return columns
    cut = Cut.after(0, 0, {})
    if record is not None:
        cut = Cut.after(record.committed, 0, record.retried, record.reached)
    found: list[tuple[Key, Any]] = []
    for page in state.committed(cut.endless()).pages(None):
        found += [(decode_key(key), value) for key, value in page if value is not None]
        if len(found) >= _LOOKED_AT:
            break
    if not found:
        what = f"{_place(state)} has no values, so the types of its columns are unknown"
        advice = 'Declare them, last that of the value: schema="word string, count long".'
        raise UsageError(what, "", (), advice)
    key = max((key for key, _ in found), key=len)
    width = 0 if key == tuple(state.key) else len(key)
    names = ["key"] if width == 1 else [f"key_{number + 1}" for number in range(width)]
    named = Fields(*names, "value") if columns is None else columns
    if len(named) != width + 1:
        what = f"{_place(state)} has keys such as {described(key)}; schema= names each of their "
        raise UsageError(f"{what}fields, then the value, found", ", ".join(named))
    rows = [(*key[:width], value) for key, value in found if len(key) >= width]
    made = [kind_of(column) for column in zip(*rows, strict=True)]
    typed = named.with_types(made)
    for name, kind in typed.types.items():
        if kind is None:
            what = f"{_place(state)}: no type takes the first values of the column {name!r}"
            raise UsageError(what, "", (), f'Declare it: schema="…, {name} string, …".')
    return typed
