"""Mirror a table of one database in another, from the change events that Debezium puts into Kafka.

    python examples/mirrored_table.py                mirrors until Ctrl-C; run again, it goes on
    python examples/mirrored_table.py change 1000    changes the source, from another terminal

Both take --servers localhost:9092 and --topic shop.public.customers; the mirror takes --to, the URL
of its database: sqlite:…, postgresql://… or mysql://…. Instead of Debezium and a database of its
own, `change` keeps the source in a SQLite file, changes it at random, and writes an event for each
change, as Debezium's connectors do: with the row before and after it, and a tombstone behind each
deletion. Kill the mirror at any time, and start it again: the table `customers` has each change
once. All files are in the folder wordcount-data/mirror.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from trident import Rows, Run, TridentTopology
from trident.errors import TridentError
from trident.spouts.kafka import KafkaRecord, KafkaSpout

DATA = Path("wordcount-data", "mirror").absolute()
EPOCH = date(1970, 1, 1)


def change_of(record: KafkaRecord) -> Sequence[Any] | None:
    """Return what a change event says of a row; None for a tombstone, which says nothing more."""
    if record.value is None:
        return None
    event = record.value.get("payload", record.value)  # within its schema, where that is sent
    if event["op"] not in ("c", "r", "u", "d"):
        raise ValueError(f"the op {event['op']!r} is no change of a row")
    row = event["after"] or event["before"]
    joined = EPOCH + timedelta(days=row["joined"])  # Debezium sends a date as a number of days
    return row["id"], row["name"], row["email"], joined, event["op"], record.offset


def mirror(servers: str, topic: str, url: str) -> TridentTopology:
    """Describe the mirror; nothing runs yet."""
    changes = KafkaSpout.opaque(
        servers,
        topic,
        value="json",
        translator=change_of,
        max_records=500,
        fields="id long, name string, email string, joined date, op string, offset long",
    )
    # All changes of a row are in one partition, as its key is: so the last one has the highest
    # offset. Where the op is "d", the row is deleted.
    customers = Rows(
        url,
        table="customers",
        key="id",
        order_by="offset",
        delete_where="op",
        columns={"offset": None},
    )
    topology = TridentTopology()
    topology.newStream("changes", changes).partitionPersist(customers)
    return topology


def changes(source: sqlite3.Connection, number: int) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Change the source at random, and yield the event of each change, with the key of its row."""
    source.row_factory = sqlite3.Row
    for _ in range(number):
        id = random.randint(1, 50)
        before = _row(source, id)
        if before is None:
            born = random.randint(0, 20_000)
            source.execute("INSERT INTO customers VALUES (?, ?, NULL, ?)", (id, f"no. {id}", born))
        elif random.random() < 0.3:
            source.execute("DELETE FROM customers WHERE id = ?", (id,))
        else:
            email = f"{id}@mail{random.randint(1, 9)}.example"
            source.execute("UPDATE customers SET email = ? WHERE id = ?", (email, id))
        after = _row(source, id)
        op = "c" if before is None else "u" if after else "d"
        event = {"before": before, "after": after, "op": op, "ts_ms": time.time_ns() // 1_000_000}
        yield id, event
        if after is None:
            yield id, None


def _row(source: sqlite3.Connection, id: int) -> dict[str, Any] | None:
    found = source.execute("SELECT * FROM customers WHERE id = ?", (id,)).fetchone()
    return None if found is None else dict(found)


def change(servers: str, topic: str, number: int) -> None:
    """Change the source so often, and write the events; the topic is made where it is not there."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    if topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(10)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    with closing(sqlite3.connect(DATA / "source.db")) as source, source:
        columns = "id INTEGER PRIMARY KEY, name TEXT, email TEXT, joined INTEGER"
        source.execute(f"CREATE TABLE IF NOT EXISTS customers ({columns})")
        for id, event in changes(source, number):
            value = None if event is None else json.dumps(event)
            producer.produce(topic, value, json.dumps({"id": id}))
        if producer.flush(30):
            raise TridentError(f"Kafka at {servers} did not take all changes: is it running?")
    print(f"{number} changes are in {topic}.")


def run_mirror(servers: str, topic: str, url: str, *, spark: bool, once: bool) -> None:
    """Mirror until Ctrl-C, or until all changes that there are have been mirrored."""
    session = None
    if spark:
        from trident.spark import local_session

        session = local_session()
    topology = mirror(servers, topic, url)
    checkpoint = DATA / f"{topic}.log"
    with (
        topology.start(session, checkpoint, trigger="available" if once else None) as run,
        suppress(KeyboardInterrupt),
    ):
        if not once:
            print("Ctrl-C stops it. Change the source from another terminal.", flush=True)
        shown = 0
        while not run.awaitTermination(0.2):
            if batches(run) != shown:
                shown = batches(run)
                print(f"batch {shown} is in the table customers", flush=True)
    print(f"{batches(run)} batches are in the table customers, each once.")


def batches(run: Run) -> int:
    return run.lastProgress.txid if run.lastProgress else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description="Mirror a table, from its change events.")
    arguments.add_argument("do", nargs="?", choices=("mirror", "change"), default="mirror")
    arguments.add_argument("number", nargs="?", type=int, default=1000, help="how many changes")
    arguments.add_argument("--servers", default="localhost:9092", help="brokers, host:port")
    arguments.add_argument("--topic", default="shop.public.customers", help="the topic")
    arguments.add_argument("--to", default=f"sqlite:{DATA / 'mirror.db'}", help="the database")
    arguments.add_argument("--spark", action="store_true", help="mirror on Spark")
    arguments.add_argument("--once", action="store_true", help="mirror what there is, then stop")
    given = arguments.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    try:
        if given.do == "change":
            change(given.servers, given.topic, given.number)
        else:
            run_mirror(given.servers, given.topic, given.to, spark=given.spark, once=given.once)
    except (TridentError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
