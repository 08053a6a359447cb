"""The commands for control records and replicas, and what identifies a run of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trident.backends.redis.connections import Command, Wire
from trident.backends.redis.errors import not_a_master
from trident.states.errors import StateUnavailableError

_REPLACE = """
if redis.call('GET', KEYS[1]) ~= (ARGV[2] or false) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
"""
_REMOVE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
"""
_TOUCH = """
local record = redis.call('GET', KEYS[1])
if record then redis.call('SET', KEYS[1], record) end
"""


@dataclass(frozen=True)
class Waiting:
    """How many replicas must have a batch before it is committed, and how long that may take."""

    replicas: int
    seconds: float

    @property
    def command(self) -> Command:
        """Waits, and answers how many replicas have all that its connection has written."""
        return ("WAIT", self.replicas, int(self.seconds * 1000))


def replace(control: bytes, new: bytes, expected: bytes | None) -> Command:
    """Return the command that puts `new` and answers 1, or answers 0 if `expected` is not there."""
    return ("EVAL", _REPLACE, 1, control, new, *(() if expected is None else (expected,)))


def remove(control: bytes, expected: bytes) -> Command:
    """Return the command that removes `expected` and answers 1, or answers 0 if it is not there."""
    return ("EVAL", _REMOVE, 1, control, expected)


def touch_and_wait(control: bytes, waiting: Waiting) -> tuple[Command, Command]:
    """Return the commands that write the record again and wait, so that all before it counts."""
    return ("EVAL", _TOUCH, 1, control), waiting.command


def check_replicas(wire: Wire, reached: int, waiting: Waiting) -> None:
    """Raise StateUnavailableError if too few replicas have acknowledged what was written."""
    if reached < waiting.replicas:
        host, port = wire.address
        raise StateUnavailableError(
            f"redis at {host}:{port}",
            f"{reached} of {waiting.replicas} replicas have acknowledged the batch's writes",
            "The batch is retried. Look why they lag: redis-cli info replication; or ask for fewer "
            "(wait_replicas=), or wait longer (wait_timeout=).",
        )


INFO: tuple[Command, Command] = (("INFO", "server"), ("INFO", "replication"))


def incarnation(wire: Wire, answers: Sequence[bytes]) -> str:
    """Return what identifies a run of a server; raises StateUnavailableError for a replica."""
    facts = parse_info(answers)
    role = facts["role"]
    if role != "master":
        raise not_a_master(*wire.address, role)
    return f"{facts['run_id']} {role} {facts['master_replid']}"


def parse_info(answers: Sequence[bytes]) -> dict[str, str]:
    """Return the fields of a server's answers to INFO."""
    return dict(
        line.split(":", 1)
        for line in b"\n".join(answers).decode(errors="replace").splitlines()
        if ":" in line
    )
