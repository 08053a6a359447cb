"""Rows of a streaming DataFrame in a table of the user's own, by one call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from trident.api.topology import TridentTopology
from trident.backends.rows import Rows, RowsDatabase
from trident.backends.rows.target import Mode, OnBadRow
from trident.errors import OperationTypeError, PlanError, UsageError, described
from trident.states.tracebacks import Briefly

if TYPE_CHECKING:
    from trident.api.run import Run

_STREAM = ("kind", "outputMode", "partitionFields")
"""The options that are those of ``newStream``; the others are those of ``start``."""


def writeStream(
    frame: Any,
    database: str | RowsDatabase,
    table: str | Sequence[str],
    key: str | Sequence[str] | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    mode: Mode | None = None,
    columns: Mapping[str, str | None] | None = None,
    order_by: str | None = None,
    delete_where: str | None = None,
    on_bad_row: OnBadRow = "fail",
    name: str | None = None,
    **options: Any,
) -> Run:
    """Write the rows of a streaming DataFrame to a table of yours, each exactly once.

    A micro-batch becomes visible in one transaction, whoever is killed, and whatever its rows are
    when it is run again. It is ``partitionPersist(Rows(…))`` of a topology of one step.

    Parameters
    ----------
    frame : DataFrame
        A *streaming* one, of classic Spark. Its columns fill those of the table that have their
        names.
    database, table, key, mode, columns, order_by, delete_where, on_bad_row, name
        Where its rows go and what becomes of them there: as of :class:`~trident.Rows`.
    checkpoint : str or path
        The folder, or the URL of a store, by which the next start knows what the table has. It
        belongs to this frame and this table.
    **options
        Those of :meth:`TridentTopology.start`, as ``trigger=`` or ``retries=``; ``max_pending=``
        has batches overlap where the driver writes them, as with SQLite or ``hosted="driver"``;
        and ``outputMode="update"`` for a DataFrame that aggregates, as ``newStream`` takes it.

    Returns
    -------
    Run
        A handle, and a context manager that stops the run.

    Raises
    ------
    OperationTypeError
        For what is no streaming DataFrame.
    UsageError
        Without a checkpoint; for arguments that don't go together.
    TableMismatchError
        Where the table does not take the rows; it lists all that is wrong.

    Examples
    --------
    >>> import sqlite3, tempfile, trident
    >>> from trident.spark import local_session
    >>> source = local_session().readStream.format("rate-micro-batch").option("rowsPerBatch", 3)
    >>> orders = source.load().selectExpr("value AS order_id", "value * 10 AS total")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shop = f"{folder}/shop.db"
    ...     with trident.writeStream(
    ...         orders, f"sqlite:{shop}", table="orders", key="order_id",
    ...         checkpoint=f"{folder}/log", trigger="available",
    ...     ) as run:
    ...         run.awaitTermination()
    ...     sqlite3.connect(shop).execute("SELECT * FROM orders ORDER BY 1").fetchall()
    True
    [(0, 0), (1, 10), (2, 20)]
    """
    with Briefly():
        if not hasattr(frame, "isStreaming"):
            what, advice = "writeStream: expected a streaming DataFrame, found", "Make it with "
            advice += "spark.readStream; a spout's stream takes partitionPersist(Rows(…))."
            raise OperationTypeError(what, described(frame), (), advice)
        if not frame.isStreaming:
            advice = (
                "Make it with spark.readStream. A batch DataFrame is written once by "
                "frame.write.jdbc(…)."
            )
            raise OperationTypeError("writeStream: the DataFrame isn't a stream", "", (), advice)
        own = [*signature(writeStream).parameters][3:-1]
        known = [*_STREAM, *[*signature(TridentTopology.start).parameters][3:-1]]
        for option in options.keys() - {*known}:
            raise PlanError("writeStream: there is no option", option, own + known)
        if checkpoint is None:
            advice = (
                "Give the path of a folder that stays: from it the next start knows which rows "
                "the table has."
            )
            raise UsageError("writeStream: checkpoint= is missing", "", (), advice)
    rows = Rows(
        database,
        table,
        key,
        mode=mode,
        columns=columns,
        order_by=order_by,
        delete_where=delete_where,
        on_bad_row=on_bad_row,
        name=name,
    )
    stream = {option: options.pop(option) for option in _STREAM if option in options}
    topology = TridentTopology()
    topology.newStream(rows.name, frame, **stream).partitionPersist(rows, name="table")
    return topology.start(frame.sparkSession, checkpoint, **options)
