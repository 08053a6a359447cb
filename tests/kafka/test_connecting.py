"""What a cluster refuses is told at once; one that is away, with how to start one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.kafka.counting import Counting
from trident.backends.kafka.driver import Admin, KafkaConnectionError, connect
from trident.errors import SourceUnavailableError
from trident.spouts.kafka import KafkaSpout
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.process import free_port

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class SecuredServer(KafkaServer):
    """A broker that asks for a password."""

    def _settings(self) -> Mapping[str, object]:
        return {
            **super()._settings(),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": (
                f'{_MODULE} username="admin" password="own" user_admin="own" user_me="right";'
            ),
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SecuredServer(tmp_path_factory.mktemp("secured")) as server:
        yield Broker(server.url).servers


def signed_in(password: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": password,
    }


def client(servers: str, **settings: str) -> Any:
    return Admin({"bootstrap.servers": servers, **settings}).client()


def test_a_wrong_password_ends_the_run_and_is_not_shown(secured: str, tmp_path: Path) -> None:
    spout = KafkaSpout.opaque(secured, "words", settings=signed_in("guessed"))
    with pytest.raises(KafkaConnectionError) as told, Counting(tmp_path).start(spout) as run:
        assert run.awaitTermination(60)
    text = str(told.value)
    assert secured in text
    assert "uthentication failed" in text
    assert "Check sasl.username, sasl.password" in text
    assert "guessed" not in text
    assert str(pickle.loads(pickle.dumps(told.value))) == text


def test_the_right_password_is_taken(secured: str) -> None:
    client(secured, **signed_in("right")).list_topics(timeout=30)


def test_tls_to_an_address_without_it_is_named(broker: Broker) -> None:
    with pytest.raises(KafkaConnectionError, match="security.protocol"):
        client(broker.servers, **{"security.protocol": "SSL"})


def test_a_password_for_a_broker_that_asks_for_none_is_named(broker: Broker) -> None:
    with pytest.raises(KafkaConnectionError, match="sasl.mechanism"):
        client(broker.servers, **signed_in("right"))


def test_a_file_of_authorities_that_is_missing_is_named() -> None:
    settings = {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"}
    with pytest.raises(KafkaConnectionError, match="/nowhere/ca.pem"):
        client("127.0.0.1:9092", **settings)


@pytest.mark.slow
def test_a_broker_that_is_away_is_told_with_its_address_and_how_to_start_one() -> None:
    address = f"127.0.0.1:{free_port()}"
    spout = KafkaSpout.opaque(address, "words", poll_timeout=0.5)
    coordinator = spout.getCoordinator({}, None)
    with pytest.raises(SourceUnavailableError, match=rf"{address}.*Is a broker running there\?"):
        coordinator.getPartitionsForBatch()
    coordinator.close()


def test_a_setting_that_the_driver_quotes_is_hidden() -> None:
    quoting = {
        "bootstrap.servers": f"127.0.0.1:{free_port()}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "hunter2",
    }
    with pytest.raises(KafkaConnectionError, match=r"beginning at: \*\*\*\.") as refused:
        connect(quoting)
    assert "hunter2" not in str(refused.value)
