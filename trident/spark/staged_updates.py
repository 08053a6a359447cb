"""What was computed of a batch, as Arrow: to be staged, and read again by another driver."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from trident.batch.computed import Computed, DeferredUpdate
from trident.batch.outcome import Outcome
from trident.job.job import Job, Update
from trident.kernels.arrow_block import block_of_table
from trident.log.errors import StagingError
from trident.spark.schemas import Schemas
from trident.tuples.block import Block


def pack_updates(job: Job, computed: Computed, schemas: Schemas) -> dict[str, bytes | memoryview]:
    """Return the tuples of each update as a stream of Arrow, by state; empty if there are none."""
    given = {each.update.state.kept_name: _stream(each, schemas) for each in computed.updates}
    names = [update.state.kept_name for update in job.updates]
    return {name: given.get(name, b"") for name in names}


def unpack_updates(job: Job, parts: Mapping[str, bytes | memoryview]) -> Computed:
    """Return what :func:`pack_updates` was given; refuse other states or fields than these."""
    known = {update.state.kept_name: update for update in job.updates}
    if known.keys() != parts.keys():
        raise _other(
            f"updates of {_list_names(parts)}, but this topology updates {_list_names(known)}"
        )
    given = [(update, parts[name]) for name, update in known.items() if len(parts[name])]
    updates = tuple(DeferredUpdate(update, _block(update, part)) for update, part in given)
    return Computed(updates, Outcome(engine="spark"))


def _stream(update: DeferredUpdate, schemas: Schemas) -> memoryview:
    names = update.block.names
    columns = [_column(update.update, update.block, name, schemas) for name in names]
    table = pa.Table.from_arrays(columns, names=list(names))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return memoryview(sink.getvalue())


def _column(update: Update, block: Block, name: str, schemas: Schemas) -> pa.Array:
    column = block.arrow(name)
    if column is not None:
        return column
    [field] = schemas.of_fields(update.reads.select([name])).arrow
    return pa.array(block.values(name), field.type)


def _block(update: Update, part: bytes | memoryview) -> Block:
    with pa.ipc.open_stream(pa.py_buffer(part)) as stream:
        block = block_of_table(stream.read_all())
    wanted = update.reads.names
    if block.length and not set(wanted) <= set(block.names):
        raise _other(
            f"tuples of {', '.join(block.names)} for the state {update.state.name!r}, but this "
            f"topology updates it with {', '.join(wanted)}"
        )
    return block


def _other(found: str) -> StagingError:
    return StagingError(
        "this checkpoint",
        f"they hold {found}",
        "Start the topology that has staged them once more with this checkpoint: it commits them, "
        "and leaves none when it stops. Then start the changed one.",
    )


def _list_names(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "no state"
