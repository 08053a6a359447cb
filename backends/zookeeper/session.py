"""A session with ZooKeeper's servers, which the driver's own threads keep alive."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from trident.states.errors import MissingDriverError, StateUnavailableError

# Our errors say once what the driver warns of at each try, and its debugging shows the password. So
# its logger is not in the tree of loggers, where a later configuration would turn it on.
_driver_log = logging.Logger("trident.kazoo", logging.CRITICAL)
_RECONNECT = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}
_DOUBT = "Whether the last write took place is unknown; it is tried again."
_CUT = "the connection was cut", f"{_DOUBT} Look at the servers' logs: did one restart?"
_MEANINGS = {
    "SessionExpiredError": (
        "the session has expired",
        f"{_DOUBT} This process, or all servers, stood still for longer than session_timeout=; "
        "another run may have the checkpoint meanwhile.",
    ),
    "ConnectionLoss": _CUT,
    "ConnectionClosedError": _CUT,
    "KazooTimeoutError": (
        "no answer in time",
        f"{_DOUBT} Are most of its servers up, and is one reachable at each address? Give a larger "
        "timeout= if they only are slow.",
    ),
    "NoAuthError": (
        "the user may not do this",
        "Give user and password as zookeeper://user:password@host/path, those that the path was "
        "made with (getAcl shows whose it is).",
    ),
    "AuthFailedError": (
        "it refuses the user or the password",
        "Check them; as part of a URL they are percent-encoded.",
    ),
    "NotReadOnlyCallError": (
        "it is cut off from most of its servers, and read-only",
        "Find those that it can't reach.",
    ),
}


class Session:
    """A session, connected from construction to :meth:`close`.

    When it expires the driver begins another one, with another :attr:`id`. `where` is how errors
    name the checkpoint. With a `login`, new nodes belong to that user alone.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        where: str,
        timeout: float,
        session_timeout: float,
        login: str | None,
    ) -> None:
        kazoo = _driver()
        self._where = where
        self._timeout = timeout
        self.session_timeout = session_timeout
        self._no_node = kazoo.exceptions.NoNodeError
        self._node_exists = kazoo.exceptions.NodeExistsError
        self._bad_version = kazoo.exceptions.BadVersionError
        self._client = kazoo.client.KazooClient(
            join_addresses(hosts),
            timeout=session_timeout,
            auth_data=[("digest", login)] if login else None,
            default_acl=kazoo.security.CREATOR_ALL_ACL if login else None,
            connection_retry=_RECONNECT,
            logger=_driver_log,
        )
        # The driver tries all servers for as long as a session lasts. The rest is for another try:
        # a server that is starting may take a connection and never answer on it (ZooKeeper 3.9.5
        # fails to close what it refuses then).
        patience = max(timeout, 1.5 * session_timeout)
        try:
            self._client.start(patience)
        except Exception as error:
            self.close()
            raise explain_start(error, where, patience) from None

    @property
    def id(self) -> int | None:
        found = self._client.client_id
        return None if found is None else found[0]

    def get(
        self, path: str, on_change: Callable[[], object] | None = None
    ) -> tuple[bytes, Any] | None:
        """Return a node's data and `Stat`, or None.

        When the node changes, `on_change` is called in another thread.
        """
        watch = None if on_change is None else (lambda event: on_change())
        with suppress(self._no_node):
            found: tuple[bytes, Any] = self._ask(self._client.get_async, path, watch)
            return found
        return None

    def set(self, path: str, data: bytes, version: int) -> int | None:
        """Replace a node's data and return the new version; None if it has another `version`."""
        with suppress(self._no_node, self._bad_version):
            stat = self._ask(self._client.set_async, path, data, version)
            return int(stat.version)
        return None

    def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> bool:
        """Make a node, and those above it; return False if it exists."""
        create = self._client.create_async
        with suppress(self._node_exists):
            self._ask(create, path, data, ephemeral=ephemeral, makepath=True)
            return True
        return False

    def children(self, path: str) -> list[str]:
        """Return the names of the nodes below one; an empty list if that is missing."""
        with suppress(self._no_node):
            found: list[str] = self._ask(self._client.get_children_async, path)
            return found
        return []

    def sync(self, path: str) -> None:
        """Let the server that answers catch up with what was written at any server."""
        self._ask(self._client.sync_async, path)

    def close(self) -> None:
        """End the session and its threads; never fails, because servers end it in time."""
        try:
            self._client.stop()
            self._client.close()
        except Exception:
            _driver_log.debug("%s: the session did not end well", self._where, exc_info=True)

    def _ask(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Ask the servers once, and return the answer; a node that is missing is an answer too."""
        try:
            return call(*arguments, **named).get(timeout=self._timeout)
        except (self._no_node, self._node_exists, self._bad_version):
            raise
        except Exception as error:
            raise explain(error, self._where) from None


def _driver() -> Any:
    try:
        import kazoo.client
        import kazoo.exceptions
        import kazoo.security
    except ImportError as error:
        raise MissingDriverError("a checkpoint in ZooKeeper", "zookeeper", str(error)) from None
    return kazoo


def join_addresses(hosts: Sequence[tuple[str, int]]) -> str:
    """Return servers as the driver and a URL write them."""
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)


def explain(error: Exception, where: str) -> StateUnavailableError:
    """Return what an error of the driver's means."""
    name = type(error).__name__
    found = _MEANINGS.get(name)
    if found is None:
        said = f"{name}: {error}".rstrip(": .")
        return StateUnavailableError(where, f"it answered: {said}", "Look at the servers' logs.")
    problem, advice = found
    return StateUnavailableError(where, problem, advice)


def explain_start(error: Exception, where: str, seconds: float) -> StateUnavailableError:
    """Return what it means that no session began within `seconds`."""
    if type(error).__name__ != "KazooTimeoutError":
        return explain(error, where)
    return StateUnavailableError(
        where,
        f"none of its servers has taken a session within {seconds:g} s",
        "Check hosts and ports, and that most of its servers are up. Start one: zkServer.sh start "
        "(Debian: apt-get install zookeeperd), or docker run -p 2181:2181 zookeeper.",
    )
