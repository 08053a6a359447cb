"""The broker that the tests start."""

from __future__ import annotations

from tests.kafka.broker import Broker
from trident.testing.servers.kafka import KafkaServer


def test_what_a_killed_broker_had_acknowledged_is_there_when_it_runs_again(
    own_server: KafkaServer,
) -> None:
    broker = Broker(own_server.url)
    topic = broker.topic()
    broker.produce(topic, ["a", "b"])
    own_server.kill()
    own_server.start()
    assert [record.value() for record in broker.read(topic)] == [b"a", b"b"]
