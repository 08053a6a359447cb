"""Count the words of a topic of Kafka, once each, and ask for them from other processes meanwhile.

    python examples/kafka_word_count.py                      counts until Ctrl-C; again, it goes on
    python examples/kafka_word_count.py write "the cat sat"  appends lines, from another terminal
    python examples/kafka_word_count.py query the cat        asks, whenever you like

All take --servers localhost:9092 and --topic trident-lines. Without lines of yours, `write` appends
the language reference that every CPython carries. The counts, and how far the topic was read, are
in the folder wordcount-data/kafka: kill the count at any time, and start it again.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from trident import Count, Run, TridentTopology
from trident.backends import state_from_url
from trident.errors import NoStateError, TridentError
from trident.spouts.kafka import KafkaSpout
from trident.states import ReadOnlyMapState

DATA = Path("wordcount-data", "kafka").absolute()
WORDS = ("the", "of", "python")


def words(line: str) -> list[str]:
    """Return the words of a line, in lower case: runs of letters, of any language."""
    return re.findall(r"[^\W\d_]+", line.lower())


def counts_of(topic: str) -> str:
    """Return the URL of the counts of a topic."""
    return f"sqlite:{DATA / 'counts.db'}?prefix={topic}"


def word_count(servers: str, topic: str) -> TridentTopology:
    """Describe the count; nothing runs yet."""
    lines = KafkaSpout.opaque(servers, topic, fields="value")
    topology = TridentTopology()
    (
        topology.newStream("lines", lines)
        .each("value", words, "word")
        .groupBy("word")
        .persistentAggregate(counts_of(topic), Count(), "count")
    )
    return topology


def ask(topic: str, asked: Sequence[str]) -> str:
    """Return the counts of words as one committed batch left them, all of the same batch."""
    state = state_from_url(counts_of(topic)).makeState()
    assert isinstance(state, ReadOnlyMapState)
    try:
        found = state.multiGet([word] for word in asked)
    except NoStateError:  # nobody has begun to count here
        found = [None] * len(asked)
    finally:
        state.close()
    return "  ".join(f"{word} {count or 0:,}" for word, count in zip(asked, found, strict=True))


def write(servers: str, topic: str, lines: Sequence[str]) -> None:
    """Append lines to the topic, which is made where it is not there."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    if topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(10)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for line in lines:
        producer.produce(topic, line.encode())
    if producer.flush(30):
        raise TridentError(f"Kafka at {servers} did not take all lines: is it running?")
    print(f"{len(lines)} lines are in {topic}.")


def count_words(servers: str, topic: str, asked: Sequence[str], *, spark: bool, once: bool) -> None:
    """Count until Ctrl-C, or until everything that there is has been counted."""
    DATA.mkdir(parents=True, exist_ok=True)
    session = None
    if spark:
        from trident.spark import local_session

        session = local_session()
    topology = word_count(servers, topic)
    with (
        topology.start(session, DATA / topic, trigger="available" if once else None) as run,
        suppress(KeyboardInterrupt),
    ):
        if not once:
            print("Ctrl-C stops it. Write and query from another terminal.", flush=True)
        shown = None
        while not run.awaitTermination(0.2):
            if batches(run) != shown:
                shown = batches(run)
                print(f"batch {shown}: {ask(topic, asked)}", flush=True)
    print(f"{ask(topic, asked)}, each counted once.")


def batches(run: Run) -> int:
    return run.lastProgress.txid if run.lastProgress else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description="Count the words of a topic of Kafka.")
    arguments.add_argument("do", nargs="?", choices=("count", "write", "query"), default="count")
    arguments.add_argument("texts", nargs="*", help="lines to write, or words to show counts of")
    arguments.add_argument("--servers", default="localhost:9092", help="brokers, host:port")
    arguments.add_argument("--topic", default="trident-lines", help="the topic")
    arguments.add_argument("--spark", action="store_true", help="count on Spark")
    arguments.add_argument("--once", action="store_true", help="count what there is, then stop")
    given = arguments.parse_args()
    try:
        if given.do == "write":
            lines = given.texts or "\n".join(pydoc_data.topics.topics.values()).splitlines()
            write(given.servers, given.topic, lines)
        elif given.do == "query":
            print(ask(given.topic, given.texts or WORDS))
        else:
            asked = given.texts or WORDS
            count_words(given.servers, given.topic, asked, spark=given.spark, once=given.once)
    except (TridentError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
