"""The driver, imported when a client is first made; what it logs goes to the log ``trident``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from trident.backends.kafka.connecting import START, connect
from trident.states.errors import MissingDriverError, StateUnavailableError

_logger = logging.getLogger("trident")


def driver() -> Any:
    """Return the module of clients."""
    try:
        return import_module("confluent_kafka")
    except ImportError as error:
        raise MissingDriverError("a stream or sink of Kafka", "kafka", str(error)) from None


def admin_module() -> Any:
    """Return the module of what asks a cluster about itself, and makes topics."""
    driver()
    return import_module("confluent_kafka.admin")


class Admin:
    """What asks a cluster about itself, and makes topics: a client, made when it is first asked."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._client: Any = None
        self._has_connected = False

    def client(self) -> Any:
        """Return the client."""
        settings = {**self._settings, "logger": DriversLog()}
        if not self._has_connected:  # later the same may pass, as while a broker starts
            self._client = connect(admin_module(), driver(), settings)
            self._has_connected = True
        elif self._client is None:
            self._client = admin_module().AdminClient(settings)
        self._client.poll(0)  # hands on what it has logged
        return self._client

    def close(self) -> None:
        """Let go of the client; another one is made when it is asked again."""
        self._client = None


class DriversLog:
    """Takes what a client logs: what matters of it becomes an error of ours anyway."""

    def log(self, level: int, message: str, *values: Any) -> None:
        _logger.debug(message, *values)


def unavailable(where: str, error: Exception) -> StateUnavailableError:
    """Return what a batch that met the driver's `error` is told."""
    [told] = error.args
    advice = f"The batch waits for the cluster. {START if is_away(told) else ''}".rstrip()
    return StateUnavailableError(where, told.str(), advice)


def is_away(error: Any) -> bool:
    """Return whether an error of the driver's says that nobody answered."""
    codes = driver().KafkaError
    away = codes._TRANSPORT, codes._TIMED_OUT, codes._RESOLVE, codes._ALL_BROKERS_DOWN
    return error.code() in away
