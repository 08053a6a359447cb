"""One consumer reads any partitions, from wherever it is told, however others fill up meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kafka.broker import Broker
from trident.spouts.kafka import KafkaSpout
from trident.spouts.kafka.reader import KafkaReader, OffsetOutOfRange

VALUES = [f"{number}" for number in range(500)]


@pytest.fixture
def topic(broker: Broker) -> str:
    made = broker.topic(3)
    for partition in range(3):
        broker.produce(made, [f"{partition}:{value}" for value in VALUES], partition=partition)
    return made


@pytest.fixture
def reader(broker: Broker, topic: str) -> Iterator[KafkaReader]:
    spout: Any = KafkaSpout.opaque(broker.servers, topic, max_records=20)
    made = KafkaReader(spout.settings)
    yield made
    made.close()


def texts(messages: list[Any]) -> list[str]:
    return [message.value().decode() for message in messages]


def expected(partition: int, start: int, end: int) -> list[str]:
    return [f"{partition}:{value}" for value in VALUES[start:end]]


def test_partitions_in_turns_give_all_records_in_order(reader: KafkaReader, topic: str) -> None:
    found: dict[int, list[str]] = {0: [], 1: [], 2: []}
    positions = dict.fromkeys(found, 0)
    while min(positions.values()) < 500:
        for partition, position in positions.items():
            fetched = reader.read((topic, partition), position, 500, 20)
            found[partition] += texts(fetched.messages)
            positions[partition] = fetched.next
    assert found == {partition: expected(partition, 0, 500) for partition in found}


def test_a_partition_that_waited_while_another_was_read_loses_nothing(
    reader: KafkaReader, topic: str
) -> None:
    positions = [reader.read((topic, partition), 0, 500, 20).next for partition in (1, 2)]
    position = 0
    while position < 500:  # meanwhile the others are held back
        position = reader.read((topic, 0), position, 500, 20).next
    for partition, start in zip((1, 2), positions, strict=True):
        found, at = [], start
        while at < 500:
            fetched = reader.read((topic, partition), at, 500, 20)
            found += texts(fetched.messages)
            at = fetched.next
        assert found == expected(partition, start, 500)


def test_it_reads_from_wherever_it_is_told(reader: KafkaReader, topic: str) -> None:
    for start in (100, 0, 480, 20, 40, 300, 0):
        fetched = reader.read((topic, 0), start, 500, 20)
        assert texts(fetched.messages) == expected(0, start, start + 20)
        assert texts(reader.read_exactly((topic, 1), start, start + 7)) == (
            expected(1, start, start + 7)
        )


def test_it_goes_on_where_a_partition_was_taken_away_and_came_back(
    reader: KafkaReader, topic: str
) -> None:
    reader.read((topic, 0), 0, 500, 20)
    reader.keep([(topic, 1)])
    reader.read((topic, 1), 0, 500, 20)
    assert texts(reader.read((topic, 0), 60, 500, 20).messages) == expected(0, 60, 80)


@pytest.mark.parametrize("start", [10, 1000])
def test_an_offset_that_is_not_there_is_told_and_the_next_read_works(
    start: int, reader: KafkaReader, topic: str, broker: Broker
) -> None:
    broker.delete_records(topic, 50)
    with pytest.raises(OffsetOutOfRange):
        reader.read((topic, 0), start, max(start + 1, 500), 20)
    assert texts(reader.read((topic, 0), 50, 500, 20).messages) == expected(0, 50, 70)
