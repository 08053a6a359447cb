"""Spark's own source of Kafka, with the options of a spout of Kafka."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame

from trident.errors import SourceUnavailableError
from trident.spark.errors import SparkSessionError
from trident.spark.kafka_records import as_tuples, check_types, decoded_by_spark
from trident.spark.versions import kafka_package
from trident.spouts.kafka.coordinator import KafkaCoordinator
from trident.spouts.kafka.settings import FIXED, KafkaSettings
from trident.spouts.kafka.spout import OfKafka
from trident.states.errors import UsageError

_SHARED = (
    "client.dns.lookup client.id client.rack connections.max.idle.ms fetch.max.bytes "
    "fetch.min.bytes group.id isolation.level max.partition.fetch.bytes metadata.max.age.ms "
    "reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms "
    "sasl.kerberos.service.name sasl.mechanism security.protocol"
).split()
"""Settings of one name and meaning in librdkafka and in Kafka's Java client."""

_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}


def kafka_frame(
    spark: Any, spout: OfKafka, *, settings: Mapping[str, Any] | None = None
) -> DataFrame:
    """Return what a spout of Kafka reads, as a streaming DataFrame of Spark's own source of Kafka.

    Hand it to ``newStream``: batches are then made by Structured Streaming, and Spark's part of
    the checkpoint has the offsets. A batch that comes back has the same offsets, so the stream
    is transactional as long as neither retention nor compaction takes what lies between them:
    ``newStream(id, frame, "transactional")``. Without that it is taken for opaque.

    Parameters
    ----------
    spark : SparkSession
        A classic session that was started with the package ``spark-sql-kafka-0-10``.
    spout : KafkaSpout
        What :meth:`KafkaSpout.opaque` or :meth:`KafkaSpout.transactional` made.
    settings : mapping, optional
        Settings of Kafka's Java client, which Spark uses, by their names there. By default
        those of the spout, if each has the same name and meaning there.

    Returns
    -------
    pyspark.sql.DataFrame
        With the spout's fields as its columns.

    Raises
    ------
    SparkSessionError
        For a session without that package, with its coordinates.
    UsageError
        For what Spark's source can't do: a setting that the Java client doesn't know, a pattern
        that Java doesn't read, a field without a type.
    SourceUnavailableError
        When the offsets of a consumer group are needed, and no broker answers.

    Notes
    -----
    Runs on the driver, and reads nothing yet. What is otherwise than with the spout:

    - A batch has at most ``max_records`` offsets of all partitions together, as Spark limits
      no single one; with markers of transactions among them.
    - Spark looks for partitions before each batch, and has its own time-outs:
      ``partition_refresh`` and ``poll_timeout`` do not count, but for dead letters.
    - Records that are gone are an error, or passed over, as ``fail_on_data_loss`` says. What
      was lost, and how many records did not decode, is not told.
    - What compaction took of a batch that comes back is not noticed.

    A key or value that is a string, bytes or a long is decoded by Spark itself; a translator, a
    function, and whatever takes records that do not decode, run in Python on the executors.

    Examples
    --------
    With a session that has the package:

    .. code-block:: python

        lines = KafkaSpout.opaque("one:9092", "lines", fields="value", max_records=1_000_000)
        topology.newStream("lines", kafka_frame(spark, lines), "transactional")

    >>> from trident.spouts.kafka import KafkaSpout
    >>> spout = KafkaSpout.opaque("one:9092", "lines", settings={"sasl.username": "me"})
    >>> kafka_frame(None, spout)  # raised before the session is used
    Traceback (most recent call last):
    ...
    trident.states.errors.UsageError: kafka_frame: Spark's source can't take over the
    spout's setting 'sasl.username'; there are: client.dns.lookup, ...
    """
    return _frame(spark, spout.settings, settings)


def _frame(spark: Any, settings: KafkaSettings, client: Mapping[str, Any] | None) -> DataFrame:
    check_types(settings)
    options = {
        "kafka.bootstrap.servers": settings.servers,
        **{f"kafka.{name}": str(value) for name, value in _client(settings, client).items()},
        **_topics(settings, spark),
        **_start(settings),
        "maxOffsetsPerTrigger": str(settings.max_records),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        "includeHeaders": str(not decoded_by_spark(settings)).lower(),
    }
    try:
        records = spark.readStream.format("kafka").options(**options).load()
    except AnalysisException as error:
        raise _missing_source(spark) from error
    return as_tuples(records, settings)


def _client(settings: KafkaSettings, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The settings of the Java client."""
    if given is None:
        given = settings.client
        for name in sorted(given.keys() - {*_SHARED}):
            what = "kafka_frame: Spark's source can't take over the spout's setting"
            advice = "Give all by the names of Kafka's Java client: kafka_frame(…, settings=…)."
            raise UsageError(what, name, _SHARED, advice)
    for name in sorted(given):
        if name in {*FIXED, "bootstrap.servers"}:
            raise UsageError(f"kafka_frame: the setting {name!r} is its own; leave it out")
        if name.startswith("kafka."):
            advice = "Write it without 'kafka.'."
            raise UsageError("kafka_frame: no setting is called", name, (), advice)
    return {"isolation.level": "read_committed", **given}


def _topics(settings: KafkaSettings, spark: Any) -> Mapping[str, str]:
    topics = settings.topics
    if not isinstance(topics, re.Pattern):
        return {"subscribe": ",".join(topics)}
    flags = "".join(letter for flag, letter in _FLAGS.items() if topics.flags & flag)
    # As in a spout, the whole name has to match, and those with two underscores are Kafka's own.
    pattern = rf"\A(?!__)(?{flags}:{topics.pattern})\z"
    try:
        spark._jvm.java.util.regex.Pattern.compile(pattern)
    except IllegalArgumentException as error:
        problem = str(error).splitlines()[0]
        what = f"kafka_frame: Java, by which Spark matches topics, refuses ({problem})"
        raise UsageError(what, topics.pattern) from error
    return {"subscribePattern": pattern}


def _start(settings: KafkaSettings) -> Mapping[str, str]:
    """Where a new stream begins; Spark looks at it only where the checkpoint has no offsets."""
    if settings.group is not None:
        return {"startingOffsets": json.dumps(_group_offsets(settings))}
    if settings.first_poll.otherwise == "TIMESTAMP":
        behind = {"startingOffsetsByTimestampStrategy": "latest"}
        return {"startingTimestamp": str(settings.timestamp), **behind}
    return {"startingOffsets": settings.first_poll.otherwise.lower()}


def _group_offsets(settings: KafkaSettings) -> Mapping[str, Mapping[str, int]]:
    """The offsets of a consumer group, and where it has none what the strategy says."""
    offsets: dict[str, dict[str, int]] = {}
    coordinator = KafkaCoordinator(settings)
    for each in coordinator.getPartitionsForBatch():
        if each.begin is None:
            raise SourceUnavailableError(f"{settings.place}, {each.getId()}", each.away)
        offsets.setdefault(each.topic, {})[str(each.partition)] = each.begin
    return offsets


def _missing_source(spark: Any) -> SparkSessionError:
    return SparkSessionError(
        "this session has no source for Kafka",
        f"Start it anew, in another process, with --packages {kafka_package(spark)}, or with that "
        "as the setting spark.jars.packages.",
    )
