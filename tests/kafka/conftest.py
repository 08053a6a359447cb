"""The broker of the tests of Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.broker import Broker
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.promised import Served


@pytest.fixture
def broker(kafka_broker: Served) -> Broker:
    """The shared broker."""
    return Broker(kafka_broker.url)


@pytest.fixture(scope="session")
def mortal_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """The broker that tests kill: a new one for each would be two JVMs more."""
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def own_server(mortal_server: KafkaServer) -> KafkaServer:
    """A broker which the test may kill, and which runs again when the next one has it."""
    if not mortal_server.running:
        mortal_server.start()
    return mortal_server
