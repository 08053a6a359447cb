"""The broker of the tests of Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.broker import Broker
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.promised import Served, served


@pytest.fixture
def broker(kafka_server: Served) -> Broker:
    """The shared broker."""
    return Broker(kafka_server.url)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[KafkaServer]:
    """A broker of the test's own, which it may kill."""
    with served("OWN_KAFKA", lambda: KafkaServer(tmp_path / "kafka")) as server:
        assert isinstance(server, KafkaServer)
        yield server
