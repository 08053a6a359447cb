"""The driver, imported when a client is first made, and how a cluster refuses it."""

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
"""After so many seconds without an answer, the next request finds out about the cluster."""
_LOOK = 0.25
_KEPT = 20
"""How many errors to keep: the driver reports them for as long as the client lives."""
START = (
    "Is a broker running there? To try one: docker run -p 9092:9092 apache/kafka. If it runs, do "
    "address and security.protocol fit its listener?"
)
"""The advice about a cluster that doesn't answer."""
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
    """Return the module of clients that ask a cluster about itself, and make topics."""
    driver()
    return import_module("confluent_kafka.admin")


class Admin:
    """A client that asks a cluster about itself, and makes topics; made when it is first used."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._client: Any = None
        self._has_connected = False

    def client(self) -> Any:
        settings = {**self._settings, "logger": DriversLog()}
        if not self._has_connected:  # later the same may pass, as while a broker starts
            self._client = connect(settings)
            self._has_connected = True
        elif self._client is None:
            self._client = admin_module().AdminClient(settings)
        self._client.poll(0)  # passes on what it has logged
        return self._client

    def close(self) -> None:
        """Drop the client; another one is made when it is needed."""
        self._client = None


class DriversLog:
    """Takes what a client logs; our errors say what matters of it."""

    def log(self, level: int, message: str, *values: Any) -> None:
        _logger.debug(message, *values)


def explain(where: str, error: Exception) -> StateUnavailableError:
    """Return what an error of the driver's means for a batch."""
    [cause] = error.args
    advice = f"The batch waits for the cluster. {START if is_away(cause) else ''}".rstrip()
    return StateUnavailableError(where, cause.str(), advice)


def is_away(error: Any) -> bool:
    """Return whether an error of the driver's says that no broker answered."""
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


def connect(settings: Mapping[str, Any]) -> Any:
    """Make a client that asks a cluster about itself, and let it connect.

    Returns the client even if no broker answers within a few seconds, which may pass. Raises
    KafkaConnectionError for what waiting doesn't repair, such as a wrong password.
    """
    try:
        return _connect(settings)
    except KafkaConnectionError as error:
        problem = _without_secrets(error.problem, settings)
        raise KafkaConnectionError(error.servers, problem, error.advice) from None


def _without_secrets(text: str, settings: Mapping[str, Any]) -> str:
    """Hide secrets in an error of the driver's, which may quote a part of a setting."""
    for name, value in settings.items():
        if is_secret(name):
            for part in sorted(re.split(r"[\s=,;\"']+", str(value)), key=len, reverse=True):
                text = text.replace(part, HIDDEN) if len(part) > 3 else text
    return text


def _connect(settings: Mapping[str, Any]) -> Any:
    kafka = driver()
    servers = str(settings["bootstrap.servers"])
    for name in _FILES:
        path = settings.get(name, "probe")  # this looks where systems keep theirs
        if path != "probe" and not Path(path).exists():
            problem = f"the file {name}={path} is missing"
            raise KafkaConnectionError(servers, problem, "Correct that setting.")
    errors: deque[Any] = deque(maxlen=_KEPT)
    try:
        client = admin_module().AdminClient({**settings, "error_cb": errors.append})
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
        _raise_refusal(servers, errors)
        down = any(each.code() == kafka.KafkaError._ALL_BROKERS_DOWN for each in errors)
        if down and not any(map(_hints_at_protocol, errors)):
            return client
    if hints := [each.str() for each in errors if _hints_at_protocol(each)]:
        raise KafkaConnectionError(servers, hints[-1], _PROTOCOL)
    return client


def _hints_at_protocol(error: Any) -> bool:
    """Return whether the driver suspects the protocol, as it may of a broker that is starting."""
    return "security.protocol" in error.str() or "listener?" in error.str()


def _raise_refusal(servers: str, errors: Iterable[Any]) -> None:
    codes = driver().KafkaError
    advice = {codes._AUTHENTICATION: _SIGN_IN, codes._SSL: _TLS}
    for error in errors:
        if error.code() in advice:
            raise KafkaConnectionError(servers, error.str(), advice[error.code()])
