"""Whether a Redis server is set so that what it acknowledges lasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trident.backends.redis.connections import Address
from trident.backends.redis.errors import not_a_master
from trident.states.finding import Finding


def examine_server(address: Address, facts: Mapping[str, str], replicas: int) -> Iterator[Finding]:
    """Yield what a server's settings, by INFO and ``appendfsync``, mean for a state."""
    where = f"redis at {address[0]}:{address[1]}"
    yield Finding("ok", f"{where} answers (version {facts.get('redis_version', 'unknown')})")
    if facts.get("role") != "master":
        found = not_a_master(*address, facts.get("role", "unknown"))
        yield Finding("problem", f"{found.place}: {found.problem}", found.advice)
    yield _examine_durability(where, facts, replicas)
    yield _examine_eviction(where, facts)
    yield from _examine_replicas(where, facts, replicas)


def _examine_durability(where: str, facts: Mapping[str, str], replicas: int) -> Finding:
    if facts.get("aof_enabled") != "1":
        if replicas:
            return Finding("ok", f"{where} keeps no append-only file; its replicas are waited for")
        return Finding(
            "warning",
            f"{where} keeps no append-only file, so a restart loses what it has acknowledged since "
            "its last snapshot",
            "Set appendonly yes and appendfsync always in its configuration; or wait for replicas "
            "(wait_replicas=).",
        )
    match facts.get("appendfsync"):
        case "always":
            return Finding("ok", f"{where} syncs every write (appendfsync always)")
        case None:
            what = f"{where} keeps an append-only file, and doesn't tell its appendfsync"
            advice = "With appendfsync always, what it acknowledges survives a loss of power."
            return Finding("ok", what, advice)
        case other:
            return Finding(
                "warning",
                f"{where} has appendfsync {other}: a loss of power takes what it has acknowledged "
                "last",
                "Set appendfsync always where a batch must not be lost.",
            )


def _examine_eviction(where: str, facts: Mapping[str, str]) -> Finding:
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return Finding("ok", f"{where} evicts no keys")
    limit = facts.get("maxmemory_human", facts.get("maxmemory", "0"))
    advice = "Set maxmemory-policy noeviction: an evicted key counts from nothing."
    if facts.get("maxmemory", "0") == "0":
        what = f"{where} has maxmemory-policy {policy}, without effect as it has no maxmemory"
        return Finding("warning", what, advice)
    what = f"{where} evicts keys when {limit} are full (maxmemory-policy {policy})"
    return Finding("problem", what, advice)


def _examine_replicas(where: str, facts: Mapping[str, str], replicas: int) -> Iterator[Finding]:
    connected = int(facts.get("connected_slaves", "0"))
    if connected < replicas:
        yield Finding(
            "problem",
            f"{where} has {connected} replicas, and batches wait for {replicas}",
            "Start them, or ask for fewer (wait_replicas=).",
        )
