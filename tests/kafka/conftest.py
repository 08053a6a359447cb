"""The broker of the tests of Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.broker import Broker
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.promised import Served


@pytest.fixture
def broker(kafka_broker: Served) -> Broker:
    """The shared broker."""
    return Broker(kafka_broker.url)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[KafkaServer]:
    """A broker of the test's own, which it may kill."""
    with KafkaServer(tmp_path / "kafka") as server:
        yield server
