"""The driver, imported when a client is first made, and what a cluster refuses it."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any

from trident.states.errors import MissingDriverError, StateUnavailableError, TridentError
from trident.states.printable import HIDDEN, is_secret

_logger = logging.getLogger("trident")
_PATIENCE = 5.0
"""Seconds after which a cluster that said nothing is left to who asks it next."""
_LOOK = 0.25
_KEPT = 20
"""Errors, which the driver goes on to tell for as long as the client lives."""
START = (
    "Is a broker running there? To try one: docker run -p 9092:9092 apache/kafka. If it runs, do "
    "address and security.protocol fit its listener?"
)
"""What to do about a cluster that nobody answers for."""
_FILES = [f"ssl.{name}.location" for name in ("ca", "certificate", "key", "keystore", "crl")]
_SIGN_IN = "Check sasl.username, sasl.password and sasl.mechanism among the settings."
_TLS = (
    "Check security.protocol and ssl.ca.location among the settings: the address has to speak TLS, "
    "with a certificate of that authority."
)
_PROTOCOL = (
    "Set security.protocol to what the address speaks: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."
)


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


@dataclass(eq=False, repr=False)
class KafkaConnectionError(TridentError):
    """A cluster refuses a client, or the client's settings can't be used."""

    servers: str
    problem: str
    advice: str

    _template = "Kafka at {servers}: {problem}. {advice}"


def connect(module: Any, kafka: Any, settings: Mapping[str, Any]) -> Any:
    """Make a client that asks a cluster about itself, and let it connect.

    It returns the client also where nobody answers within a few seconds: that may pass. Raises
    KafkaConnectionError for what waiting doesn't mend, such as a wrong password.
    """
    try:
        return _connect(module, kafka, settings)
    except KafkaConnectionError as error:
        problem = _without_secrets(error.problem, settings)
        raise KafkaConnectionError(error.servers, problem, error.advice) from None


def _without_secrets(text: str, settings: Mapping[str, Any]) -> str:
    """What the driver says, which may quote a part of a setting that it can't read."""
    for name, value in settings.items():
        if is_secret(name):
            for part in sorted(re.split(r"[\s=,;\"']+", str(value)), key=len, reverse=True):
                text = text.replace(part, HIDDEN) if len(part) > 3 else text
    return text


def _connect(module: Any, kafka: Any, settings: Mapping[str, Any]) -> Any:
    servers = str(settings["bootstrap.servers"])
    for name in _FILES:
        path = settings.get(name, "probe")  # which looks where systems keep theirs
        if path != "probe" and not Path(path).exists():
            problem = f"{name}={path} is not there"
            raise KafkaConnectionError(servers, problem, "Correct that setting.")
    told: deque[Any] = deque(maxlen=_KEPT)
    try:
        client = module.AdminClient({**settings, "error_cb": told.append})
    except kafka.KafkaException as error:
        problem = error.args[0].str()
        raise KafkaConnectionError(servers, problem, "Correct the settings.") from None
    until = monotonic() + _PATIENCE
    while monotonic() < until:
        try:
            client.list_topics(timeout=_LOOK)
            return client
        except kafka.KafkaException:
            client.poll(0)  # calls error_cb
        _raise_refused(kafka.KafkaError, servers, told)
        down = any(each.code() == kafka.KafkaError._ALL_BROKERS_DOWN for each in told)
        if down and not any(map(_hints_at_protocol, told)):
            return client
    if hints := [each.str() for each in told if _hints_at_protocol(each)]:
        raise KafkaConnectionError(servers, hints[-1], _PROTOCOL)
    return client


def _hints_at_protocol(error: Any) -> bool:
    """Whether the driver guesses so. A broker that is starting may look alike for a moment."""
    return "security.protocol" in error.str() or "listener?" in error.str()


def _raise_refused(codes: Any, servers: str, told: Iterable[Any]) -> None:
    for each in told:
        problem = each.str()
        if each.code() == codes._AUTHENTICATION:
            raise KafkaConnectionError(servers, problem, _SIGN_IN)
        if each.code() == codes._SSL:
            raise KafkaConnectionError(servers, problem, _TLS)
