"""Writes that take place only while the control record is the one that the attempt began with.

Each is a transaction: the record is watched, read and compared, and Redis executes the writes only
if the record was not touched since. A script that compares and writes takes half as long again,
because every key and value becomes a string of the script's language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trident.backends.redis.connections import Make, Wire
from trident.states.errors import StateUnavailableError

_STARTS = 16


@dataclass(frozen=True)
class FencedWrite:
    """One transaction for one shard; its commands are made right before they are sent."""

    control: bytes
    commands: Sequence[Make]


def write_fenced(
    wires: Sequence[Wire], writes: Sequence[Sequence[FencedWrite]], fence: bytes
) -> bool:
    """Write to several servers at once if all records are `fence`; return whether they are.

    All records are compared before the first write. A record that changes later refuses the
    transactions that follow; the earlier ones leave what any overtaken attempt leaves. A record
    that `flush` has written again, unchanged, refuses them too. Then everything is written again,
    to the same effect.
    """
    for _ in range(_STARTS):
        talks = [_Talk(wire, each, fence) for wire, each in zip(wires, writes, strict=True)]
        for talk in talks:
            talk.open()
        if False in [talk.read_opened() for talk in talks]:
            _unwatch(wires)
            return False
        while talks := [talk for talk in talks if talk.has_more]:
            for talk in talks:
                talk.send()
            if False in [talk.read_executed() for talk in talks]:
                _unwatch(wires)
                break
        else:
            return True
    host, port = wires[0].address
    raise StateUnavailableError(
        f"redis at {host}:{port}",
        f"a control record was written again, unchanged, during {_STARTS} tries",
        "The batch is retried. Only flush() writes it so, once a batch: what else does?",
    )


def _unwatch(wires: Sequence[Wire]) -> None:
    for wire in wires:
        wire.ask(["UNWATCH"])


class _Talk:
    """The transactions for one server, one by one; with each, the next record is watched."""

    def __init__(self, wire: Wire, writes: Sequence[FencedWrite], fence: bytes) -> None:
        self._wire = wire
        self._writes = writes
        self._fence = fence
        self._done = 0

    @property
    def has_more(self) -> bool:
        return self._done < len(self._writes)

    def open(self) -> None:
        self._controls = list(dict.fromkeys(write.control for write in self._writes))
        gets = [("GET", control) for control in self._controls]
        self._wire.send(self._wire.pack(("WATCH", self._controls[0]), *gets))
        self._pack()

    def read_opened(self) -> bool:
        self._wire.read()
        return {self._wire.read() for _ in self._controls} == {self._fence}

    def send(self) -> None:
        self._wire.send(self._packed)
        self._done += 1
        self._unread = self._count
        if self.has_more:
            control = self._writes[self._done].control
            self._wire.send(self._wire.pack(("WATCH", control), ("GET", control)))
            self._pack()

    def read_executed(self) -> bool:
        for _ in range(self._unread):
            self._wire.read()
        executed = self._wire.read_executed()
        if not self.has_more:
            return executed
        self._wire.read()
        return self._wire.read() == self._fence and executed

    def _pack(self) -> None:
        """Pack the next transaction, while the server executes the one before."""
        commands = [make() for make in self._writes[self._done].commands]
        self._packed = self._wire.pack(("MULTI",), *commands, ("EXEC",))
        self._count = len(commands) + 1
