"""What the driver's errors mean for whoever runs the servers: each with the next step."""

from __future__ import annotations

from trident.states.errors import StateUnavailableError

_DOUBT = "Whether the last write took place is unknown; it is tried again."

_MEANINGS = {
    "SessionExpiredError": (
        "the session has expired",
        f"{_DOUBT} This process, or all servers, stood still for longer than session_timeout=; "
        "another run may have the checkpoint meanwhile.",
    ),
    "ConnectionLoss": (
        "the connection was cut",
        f"{_DOUBT} Look at the servers' logs: did one restart?",
    ),
    "ConnectionClosedError": (
        "the connection was cut",
        f"{_DOUBT} Look at the servers' logs: did one restart?",
    ),
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
        "Look which are gone.",
    ),
}


def explained(error: Exception, where: str) -> StateUnavailableError:
    """Return what `error`, which the driver raised, means."""
    name = type(error).__name__
    found = _MEANINGS.get(name)
    if found is None:
        said = f"{name}: {error}".rstrip(": .")
        return StateUnavailableError(where, f"it answered: {said}", "Look at the servers' logs.")
    problem, advice = found
    return StateUnavailableError(where, problem, advice)


def unreachable(error: Exception, where: str, seconds: float) -> StateUnavailableError:
    """Return what it means that no session began within some seconds."""
    if type(error).__name__ != "KazooTimeoutError":
        return explained(error, where)
    return StateUnavailableError(
        where,
        f"none of its servers has taken a session within {seconds:g} s",
        "Check hosts and ports, and that most of its servers are up. Start one: zkServer.sh start "
        "(Debian: apt-get install zookeeperd), or docker run -p 2181:2181 zookeeper.",
    )
