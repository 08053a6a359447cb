"""What the driver's errors mean, each with the next step."""

from __future__ import annotations

import re

from trident.states.errors import CorruptStateError, StateUnavailableError

_DOUBT = "Whether it took the last write is unknown, so the batch is retried."

_MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "Connection refused",
        "nothing listens there",
        "Start one: redis-server --port {port} (Debian: apt-get install redis-server), or "
        "docker run -p {port}:6379 redis.",
    ),
    (
        "resolution|not known|nodename|No address associated",
        "the host is unknown",
        "Check the name of the host.",
    ),
    (
        "Timeout connecting|No route|unreachable|Error 110",
        "no connection in time",
        "Check host and port, the firewalls between, that the machine is up, and whether the port "
        "speaks TLS.",
    ),
    (
        "(?i)certificate.verify|hostname mismatch|doesn't match",
        "its certificate is not trusted",
        "Give the file of the authority that signed it as tls_ca=, and the host by a name that "
        "is in the certificate.",
    ),
    (
        "SSL|TLS",
        "no TLS connection came about",
        "Give a port that speaks TLS, or use none: redis:// instead of rediss://, tls=False.",
    ),
    (
        "called without any password|no password is set",
        "it has no password, and one was given",
        "Leave the password out, or set one: redis-cli config set requirepass …",
    ),
    (
        "Authentication required",
        "it wants a password",
        "Give password=, or redis://user:password@host.",
    ),
    (
        "AuthenticationError|invalid username-password|invalid password",
        "it refuses the user or the password",
        "Check password=, and user=, which is {user}; as part of a URL they are percent-encoded.",
    ),
    (
        "NoPermissionError|AuthorizationError",
        "the user may not do this",
        "Let it: ACL SETUSER <user> +@read +@write +@transaction +@scripting +@connection +info "
        "+wait, and ~ with the keys of this state.",
    ),
    (
        "OutOfMemoryError|OOM ",
        "it is full, its maxmemory is reached",
        "Raise maxmemory or remove other keys. Leave maxmemory-policy at noeviction: a key that "
        "is evicted counts from nothing.",
    ),
    (
        "ReadOnlyError|READONLY",
        "it is a read-only replica",
        "Give the address of its master, or let Sentinel find that: redis+sentinel://….",
    ),
    (
        "BusyLoadingError",
        "it is still loading its data",
        "The batch is retried; wait until the server has started.",
    ),
    (
        "MISCONF",
        "it can't save its data, so it takes no writes",
        "Look at its log: is its disk full, or its folder not writable?",
    ),
    (
        "NOREPLICAS",
        "fewer replicas are connected than its min-replicas-to-write",
        "Start them, or look why they don't follow: redis-cli info replication.",
    ),
    (
        "MasterDownError|MASTERDOWN",
        "it is a replica that has lost its master",
        "Give the address of the master, and look why it is away.",
    ),
    (
        "MovedError|AskError|TryAgainError|CrossSlotError|MOVED|TRYAGAIN|CROSSSLOT|non local key",
        "the key is at another node of the cluster",
        "The batch is retried with the cluster's new map; while a slot is on its way to another "
        "node no attempt succeeds, so move slots between runs. Where a single server was given, "
        "give the cluster: redis+cluster://host:port,host:port, or cluster=[(host, port)].",
    ),
    (
        "ClusterDownError|CLUSTERDOWN",
        "its cluster does not serve all slots",
        "Find the missing nodes: redis-cli --cluster check {host}:{port}.",
    ),
    (
        "cluster support disabled",
        "it is not a node of a cluster",
        "Give it as a single server: redis://{host}:{port}.",
    ),
    (
        "DB index|Invalid Database|SELECT is not allowed",
        "it has no database of that number",
        "Take a smaller db=, 0 in a cluster, or raise databases in its configuration.",
    ),
    (
        "max number of clients",
        "it takes no more clients",
        "Raise maxclients, or look who is connected: redis-cli client list.",
    ),
    (
        "BUSY",
        "it is busy with a script",
        "Wait for it, or end it: redis-cli script kill.",
    ),
    (
        "InvalidResponse|Protocol [Ee]rror",
        "what answers there is no Redis",
        "Check host and port.",
    ),
    (
        "TimeoutError",
        "no answer in time",
        f"{_DOUBT} It may be paused, swapping, or busy with a long command (redis-cli slowlog "
        "get); give a larger timeout= if it only is slow.",
    ),
    (
        "(?i)closed|reset by peer|broken pipe|while reading|while writing",
        "the connection was cut",
        f"{_DOUBT} Look at its log: did it restart, or drop this client?",
    ),
)


def explain(
    error: Exception, host: str, port: int, secret: str | None = None, user: str | None = None
) -> Exception:
    """Return what `error`, which the driver raised, means, without `secret`."""
    where = f"redis at {host}:{port}"
    said = str(error).rstrip(". ")
    if secret:
        said = said.replace(secret, "***")
    if "WRONGTYPE" in said:
        return CorruptStateError(
            f"a key of this state in {where}",
            "it holds another kind of value",
            "Open the state with the layout= it was written with, or give it another prefix: "
            "something else has that key.",
        )
    named = f"{type(error).__name__} {said}"
    for pattern, problem, advice in _MEANINGS:
        if re.search(pattern, named):
            return StateUnavailableError(
                where,
                f"{problem} ({said})",
                advice.format(host=host, port=port, user=user or "default"),
            )
    return StateUnavailableError(where, f"it answered: {said}", "Look at the server's log.")


def wrong_type(where: str, key: bytes, found: str, expected: str) -> CorruptStateError:
    """Return the error of a key of another type than this state writes, both as TYPE names them."""
    return CorruptStateError(
        f"the key {key[:200]!r} of this state in {where}",
        f"it is a {found}, and has to be a {expected}",
        "It is left unchanged. Something else wrote it: delete or rename it (redis-cli del …), or "
        "give the state another prefix; a state that was written in another layout is opened with "
        "that layout=.",
    )


def not_a_master(host: str, port: int, role: str) -> StateUnavailableError:
    """Return the error of a server that follows another one."""
    return StateUnavailableError(
        f"redis at {host}:{port}",
        f"its role is {role}: what is written there is lost, or refused",
        "Give the address of its master, or let Sentinel find that: redis+sentinel://….",
    )
