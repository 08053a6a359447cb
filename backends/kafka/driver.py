"""The driver, imported when a client is first made; what it logs goes to the log ``trident``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from trident.states.errors import MissingDriverError, StateUnavailableError

_logger = logging.getLogger("trident")


def driver() -> Any:
    """Return the module of clients.

    Raises
    ------
    MissingDriverError
        When the driver is not installed.
    """
    try:
        return import_module("confluent_kafka")
    except ImportError as error:
        raise MissingDriverError("a stream or sink of Kafka", "kafka", str(error)) from None


def admin_module() -> Any:
    """Return the module of what asks a cluster about itself, and makes topics."""
    driver()
    return import_module("confluent_kafka.admin")


class Admin:
    """What asks a cluster about itself, and makes topics: a client, made when it is first asked.

    Parameters
    ----------
    settings : mapping
        The driver's, with the servers.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._client: Any = None

    def client(self) -> Any:
        """Return the client."""
        if self._client is None:
            settings = {**self._settings, "logger": DriversLog()}
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
    return StateUnavailableError(where, error.args[0].str(), "The batch waits for the cluster.")
