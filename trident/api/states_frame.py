"""What a state holds, as a DataFrame of Spark's, by one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.errors import OperationTypeError, UsageError, described
from trident.states.maps.factory import MapStateFactory
from trident.states.state import StateFactory
from trident.states.tracebacks import Briefly
from trident.tuples.fields import Fields

if TYPE_CHECKING:
    from trident.tuples.fields import FieldsLike


def states_frame(
    spark: Any,
    state: str | StateURL | StateFactory,
    schema: FieldsLike | None = None,
    *,
    partitions: int | None = None,
) -> Any:
    """Read a state as a DataFrame, as of one committed batch, while its topology may run.

    Parameters
    ----------
    spark : SparkSession
        Of classic Spark, or of Spark Connect.
    state : str, StateURL or StateFactory
        What the topology was given, with the ``prefix=`` under which it keeps the state: by default
        the state's name.
    schema : str or Fields, optional
        The fields of a key, then the value: ``"word string, count long"``. An aggregate without
        groups has only the value. Without types, those of some values are taken. Without names they
        are ``key``, or ``key_1``, ``key_2`` …, and ``value``.
    partitions : int, optional
        How many tasks read the keys side by side; as many as the session has cores. In HBase it
        is one for each region of the table.

    Returns
    -------
    DataFrame
        A row for each key that has a value. Spark keeps its rows, so it stays as it is. The
        metadata of its last column tells the batch: ``{"txid": 17}``.

    Raises
    ------
    NoStateError
        When no state has begun there.
    StateError
        For a store that lists no keys.
    StateUnavailableError
        When the store is away; when batches moved on during all tries.
    UsageError
        For a key or value that doesn't fit the schema; for a missing schema that can't be taken
        from the values.

    Notes
    -----
    Runs a job, in which each task reads a part of the keys from the store. What only this process
    reaches, which is memory and, on a cluster, SQLite, is read by this process, into its memory.

    An opaque state keeps two batches. So its tasks may read while the next batch is written; where
    the one after that begins they begin anew, four times at most. Then PostgreSQL and SQLite are
    read by this process at one moment, and for any other store it is an error. States of the other
    kinds keep one batch, and are read only while none is under way. What Storm writes
    (``written_by=storm``) is read as it is.

    Examples
    --------
    >>> import tempfile, trident
    >>> from trident import Count, FixedBatchSpout, TridentTopology
    >>> from trident.spark import local_session
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     topology, place = TridentTopology(), f"sqlite:{folder}/counts.db?prefix=count"
    ...     words = FixedBatchSpout("word string", 3, ["a"], ["b"], ["a"])
    ...     grouped = topology.newStream("words", words).groupBy("word")
    ...     _ = grouped.persistentAggregate(place, Count(), "count")
    ...     with topology.start(checkpoint=f"{folder}/log", trigger="available") as run:
    ...         run.awaitTermination()
    ...     counts = trident.states_frame(local_session(), place, "word, count")
    ...     counts.sort("word").collect()
    True
    [Row(word='a', count=2), Row(word='b', count=1)]
    >>> counts.schema["count"].metadata
    {'txid': 1}
    """
    with Briefly():
        if not hasattr(spark, "createDataFrame"):
            advice = "trident.spark.local_session() makes one."
            raise OperationTypeError(
                "states_frame: expected a SparkSession, found", described(spark), (), advice
            )
        factory = state if isinstance(state, StateFactory) else state_from_url(state)
        if not isinstance(factory, MapStateFactory):
            what = "states_frame: only a map over a store is read so, found"
            raise UsageError(what, factory.label)
        if partitions is not None and partitions < 1:
            raise UsageError("states_frame: partitions= takes 1 or more, found", str(partitions))
        columns = None if schema is None else Fields.of(schema)
        from trident.spark.state_frame import frame_of_state  # pyspark is optional

        return frame_of_state(spark, factory, columns, partitions)
