"""Kafka's topics as a stream, opaque or transactional."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Never, Self

from trident.errors import described
from trident.spouts.interfaces import SpoutKind
from trident.spouts.kafka.coordinator import KafkaCoordinator
from trident.spouts.kafka.emitters import OpaqueKafkaEmitter, TransactionalKafkaEmitter
from trident.spouts.kafka.records import (
    COLUMNS,
    DECODERS,
    DEFAULT,
    Decoder,
    Translation,
    Translator,
    typed,
)
from trident.spouts.kafka.settings import (
    FIXED,
    DeadLetterTopic,
    FirstPollOffsetStrategy,
    KafkaSettings,
    OnError,
)
from trident.spouts.partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from trident.states.errors import UsageError
from trident.tuples.fields import Fields, FieldsLike

Topics = str | Sequence[str] | re.Pattern[str]
Deserializer = str | Decoder
_MOST_RECORDS = 250_000
_BYTES_A_RECORD = 256 << 10
"""How much free memory each record of a partition needs: a batch has several partitions, and twice
as many records are fetched ahead."""


class OfKafka:
    """The part that the spouts of both kinds share."""

    kind: ClassVar[SpoutKind]
    emitter: ClassVar[type[OpaqueKafkaEmitter] | type[TransactionalKafkaEmitter]]

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> KafkaCoordinator:
        return KafkaCoordinator(self.settings)

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> Any:
        return self.emitter(self.settings)

    def getOutputFields(self) -> Fields:
        return self.settings.fields

    def __repr__(self) -> str:
        return f"KafkaSpout.{self.kind}({self.settings!r})"

    def from_history(self, since: str | None) -> Self:
        """Return the spout as a rebuild runs it.

        It begins at ``"earliest"``, at a time (ISO 8601), or at offsets: ``{"topic": {"0": 17}}``.
        Partitions without an offset begin at their first record.
        """
        history = copy(self)
        records = max(self.settings.max_records, _most_records())
        history.settings = replace(self.settings, max_records=records, **_beginning(since))
        return history


def _most_records() -> int:
    """How many records of a partition a batch of history may hold in the free memory."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_MOST_RECORDS, free // _BYTES_A_RECORD)


def _beginning(since: str | None) -> dict[str, Any]:
    """The settings that ``--from`` asks for."""
    if since is None:
        return {}
    given: dict[str, Any] = {"first_poll": FirstPollOffsetStrategy.EARLIEST, "timestamp": None}
    if since == "earliest":
        return given
    try:
        if not since.startswith("{"):
            moment = datetime.fromisoformat(since)
            strategy = FirstPollOffsetStrategy.TIMESTAMP
            return {"first_poll": strategy, "timestamp": _milliseconds(moment)}
        offsets = {
            f"{topic}-{int(partition)}": int(offset)
            for topic, found in json.loads(since).items()
            for partition, offset in found.items()
        }
        if min(offsets.values(), default=0) < 0:
            raise ValueError("an offset is below 0")
    except (ValueError, TypeError, AttributeError):
        allowed = ["earliest", "2026-01-31T12:00:00+00:00", '{"topic": {"0": 17}}']
        raise UsageError("--from: a Kafka stream can't begin at", since, allowed) from None
    return {**given, "offsets": offsets}


class KafkaTridentSpoutOpaque(OfKafka, IOpaquePartitionedTridentSpout):
    """What :meth:`KafkaSpout.opaque` makes."""

    emitter = OpaqueKafkaEmitter


class KafkaTridentSpoutTransactional(OfKafka, IPartitionedTridentSpout):
    """What :meth:`KafkaSpout.transactional` makes."""

    emitter = TransactionalKafkaEmitter


class KafkaSpout:
    """Makes spouts that read topics of Kafka."""

    def __init__(self, *arguments: Never, **options: Never) -> None:
        advice = "Write KafkaSpout.opaque(servers, topics) or KafkaSpout.transactional(…)."
        raise UsageError("KafkaSpout: it is no spout itself, but makes two kinds", "", (), advice)

    @staticmethod
    def opaque(
        servers: str | Sequence[str],
        topics: Topics,
        *,
        first_poll: FirstPollOffsetStrategy | str = FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST,
        timestamp: int | datetime | None = None,
        fields: FieldsLike | None = None,
        translator: Translator | None = None,
        key: Deserializer = "string",
        value: Deserializer = "string",
        max_records: int = 10_000,
        on_error: OnError = "fail",
        fail_on_data_loss: bool = False,
        poll_timeout: float = 5.0,
        partition_refresh: float = 30.0,
        settings: Mapping[str, Any] | None = None,
    ) -> KafkaTridentSpoutOpaque:
        """Return a spout whose replayed batches may hold other records; none is lost or doubled.

        Exact with opaque state. It goes on without partitions that are away, and after records that
        retention has deleted before they were read: the log ``trident`` names both.

        Parameters
        ----------
        servers : str or sequence of str
            Brokers to begin with, ``"host:port"``.
        topics : str, sequence of str, or compiled pattern
            The topics; with a pattern all topics whose whole name matches, also later ones.
        first_poll : FirstPollOffsetStrategy or str
            Where to begin if the log doesn't know the stream.
        timestamp : int or datetime, optional
            For the strategies with a TIMESTAMP, in milliseconds since 1970.
        fields : Fields, str, or iterable of str, optional
            Without a translator the values of a record that a tuple has, out of topic, partition,
            offset, key, value and timestamp (all but the last by default); these are emitted as
            columns. With one, the names, and if you like types, of the values that it returns.
        translator : callable, optional
            Takes a :class:`KafkaRecord`, and returns a tuple's values, or None for no tuple. Called
            by the process that reads the partition, on Spark by a task; so it has to pickle.
        key, value : str or callable
            Their decoder: ``"string"`` (UTF-8), ``"bytes"``, ``"long"`` (8 bytes), ``"json"``, or a
            function of bytes. An absent key or value is None.
        max_records : int
            How many records of each partition a batch holds at most.
        on_error : str, callable or DeadLetterTopic
            What to do with a record if its decoding or translation raises: ``"fail"`` stops the
            run and names it; ``"skip"`` skips it; a function gets the record, undecoded, and the
            error; a :class:`DeadLetterTopic` keeps it. The log ``trident`` says how many.
        fail_on_data_loss : bool
            Whether to stop if records were removed before they were read. Otherwise the stream goes
            on, and logs it.
        poll_timeout : float
            Seconds to wait for an answer before a partition counts as away.
        partition_refresh : float
            Seconds after which to look for new topics and partitions.
        settings : mapping, optional
            Settings of librdkafka, for security among others. Their values are never shown.

        Raises
        ------
        UsageError
            For an argument that is wrong.

        Notes
        -----
        Only records of committed transactions are read, unless ``isolation.level`` says otherwise.
        No offset is committed to Kafka: the stream's own log knows how far it has come.

        Examples
        --------
        >>> spout = KafkaSpout.opaque("localhost:9092", "sentences", fields="value")
        >>> spout.kind, spout.getOutputFields()
        ('opaque', Fields('value string'))
        """
        return KafkaTridentSpoutOpaque(_checked(**locals()))

    @staticmethod
    def transactional(
        servers: str | Sequence[str],
        topics: Topics,
        *,
        first_poll: FirstPollOffsetStrategy | str = FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST,
        timestamp: int | datetime | None = None,
        fields: FieldsLike | None = None,
        translator: Translator | None = None,
        key: Deserializer = "string",
        value: Deserializer = "string",
        max_records: int = 10_000,
        on_error: OnError = "fail",
        fail_on_data_loss: bool = True,
        poll_timeout: float = 5.0,
        partition_refresh: float = 30.0,
        settings: Mapping[str, Any] | None = None,
    ) -> KafkaTridentSpoutTransactional:
        """Return a spout whose replayed batches hold the same records.

        Exact with transactional and opaque state. A batch waits for partitions that are away. If a
        batch has to be emitted again, and retention or compaction has removed records of it since,
        the run stops; with ``fail_on_data_loss=False`` it goes on with the others.

        The parameters are those of :meth:`opaque`.

        Examples
        --------
        >>> KafkaSpout.transactional("one:9092,two:9092", ["a", "b"], settings={"a.secret": "x"})
        KafkaSpout.transactional(<Kafka at one:9092,two:9092, a, b, client settings: a.secret>)
        """
        return KafkaTridentSpoutTransactional(_checked(**locals()))


def _checked(**given: Any) -> KafkaSettings:
    """The settings of a spout of either kind."""
    key, value, translator = given["key"], given["value"], given["translator"]
    names = Fields.of(DEFAULT if given["fields"] is None else given["fields"])
    for which, kind in (("key", key), ("value", value)):
        if not callable(kind) and kind not in DECODERS:
            raise UsageError(f"KafkaSpout: {which}=", str(kind), list(DECODERS), "Or a function.")
    if translator is None:
        for name in names:
            if name not in COLUMNS:
                advice = "A translator makes other fields."
                raise UsageError("KafkaSpout: a record has no", name, COLUMNS, advice)
        names = typed(names, key, value)
    elif given["fields"] is None:
        raise UsageError("KafkaSpout: a translator needs fields=, the names of what it returns")
    strategy = _strategy(given["first_poll"])
    if (strategy.otherwise == "TIMESTAMP") != (given["timestamp"] is not None):
        raise UsageError("KafkaSpout: timestamp= goes with first_poll=TIMESTAMP, and it with that")
    for name, least in (("max_records", 1), ("poll_timeout", 0), ("partition_refresh", 0)):
        found = given[name]
        if isinstance(found, bool) or not isinstance(found, int | float) or found < least:
            raise UsageError(
                f"KafkaSpout: {name}= is {described(found)}, expected at least {least}"
            )
    on_error, servers = given["on_error"], given["servers"]
    handled = callable(on_error) or isinstance(on_error, DeadLetterTopic)
    if not handled and on_error not in ("fail", "skip"):
        advice = "Or a function, or a DeadLetterTopic."
        raise UsageError("KafkaSpout: on_error=", str(on_error), ["fail", "skip"], advice)
    client = dict(given["settings"] or {})
    for name in sorted(client.keys() & {*FIXED, "bootstrap.servers", "logger", "error_cb"}):
        raise UsageError(f"KafkaSpout: the setting {name!r} is the spout's own; leave it out")
    return KafkaSettings(
        servers=servers if isinstance(servers, str) else ",".join(servers),
        topics=_topics(given["topics"]),
        first_poll=strategy,
        timestamp=_milliseconds(given["timestamp"]),
        fields=names,
        translation=Translation(names.names, key, value, translator),
        max_records=given["max_records"],
        on_error=on_error,
        fail_on_data_loss=given["fail_on_data_loss"],
        poll_timeout=given["poll_timeout"],
        partition_refresh=given["partition_refresh"],
        client=client,
    )


def _strategy(given: Any) -> FirstPollOffsetStrategy:
    if isinstance(given, FirstPollOffsetStrategy):
        return given
    if given not in FirstPollOffsetStrategy.__members__:
        allowed = list(FirstPollOffsetStrategy.__members__)
        raise UsageError("KafkaSpout: first_poll=", str(given), allowed)
    return FirstPollOffsetStrategy[given]


def _topics(given: Any) -> tuple[str, ...] | re.Pattern[str]:
    if isinstance(given, re.Pattern):
        return given
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
            advice = "Give a name, a list of names, or a re.compile(...) of them."
            raise UsageError("KafkaSpout: not the name of a topic:", str(name), (), advice)
    if not names:
        raise UsageError("KafkaSpout: no topic is given")
    return tuple(dict.fromkeys(names))


def _milliseconds(given: int | datetime | None) -> int | None:
    return int(given.timestamp() * 1000) if isinstance(given, datetime) else given
