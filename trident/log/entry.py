"""One entry of the coordinator log: all that a group has to remember."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from trident.log.errors import CorruptLogError, MetadataError
from trident.states.control import ControlRecord
from trident.states.values import Token

FORMAT = 1
_STORED_NAMES = {"log_id": "lineage", "retried": "exceptions"}
"""Fields that keep their first name in the file."""

MOMENT = "/moment"
"""The key of the batch's time in a plan, beside the streams: no stream has such a name."""

ACTIVE = "/active"
"""Likewise of the partitions of each stream that a watermark waits for, for windows."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The whole state of a group's log at one moment; immutable, picklable."""

    number: int
    """Its place in the log, consecutive from 1."""
    writer: str
    """The run that wrote it."""
    log_id: str
    """The log's id, made once."""
    begun: Token
    """The attempt that `writer` may run, reserved by a commit or after a failure."""
    committed: int
    """The last committed txid."""
    base: int = 0
    """The txid before the log's first."""
    clock: str = "spout"
    """``"spout"`` or ``"dataframe"``: what makes the batches."""
    query_id: str | None = None
    """Spark's id of the streaming query; None for spouts and before the first commit."""
    streams: Mapping[str, str] = field(default_factory=dict)
    """The schema of each stream, by its id."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """The paths that each stream of files reads, by its id; missing in older entries."""
    states: Mapping[str, Token] = field(default_factory=dict)
    """For each state the last committed attempt that had begun it."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The kind of each state that has one."""
    topology: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What else has to stay the same: see `trident.batch.changes`; empty in older entries."""
    accepted: Mapping[str, Token | None] = field(default_factory=dict)
    """For each state with an accepted loss of writes, the attempt that it held then (None: no
    record). A state is here, and not in `states`, until the next batch that updates it commits."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What each stream's spout said with the last commit."""
    planned: Mapping[str, Any] | None = None
    """What the batch under way will hold, for transactional spouts. If a step asks for them, also
    the batch's time, under `MOMENT`, and the spouts' partitions, under `ACTIVE`."""
    retried: Mapping[int, int] = field(default_factory=dict)
    """The txids whose committed attempt was not 0, and that attempt; -1 if none counts."""
    swept: int = 0
    """The last txid that was ever forgotten: a record may lack it, although `retried` has it again.
    0 in older entries."""
    reached: int | None = None
    """The time that the group's batches have reached, in milliseconds since 1970, if it lets
    entries of states expire; it never goes back."""
    digest: str | None = None
    """A digest of what the last committed batch covers, by the source."""
    adopted: tuple[str, ...] = ()
    """The log ids whose state this log has taken over."""
    successor: tuple[str, str] | None = None
    """The log id and the place of the log that has taken over this one's state."""

    @property
    def reserved(self) -> ControlRecord:
        """The control record of the attempt that the writer may run, for its states."""
        planned = self.planned or {}
        return ControlRecord(
            *(self.log_id, self.begun, self.committed, self.retried),
            moment=planned.get(MOMENT),
            active=planned.get(ACTIVE, {}),
            reached=self.reached,
        )

    @property
    def plan(self) -> str | None:
        """A digest of what spouts have planned, without a batch's time; None if none plans."""
        plans = plans_of_streams(self.planned or {})
        if not plans:
            return None
        return blake2b(json.dumps(plans, sort_keys=True).encode(), digest_size=8).hexdigest()

    @property
    def has_adopted(self) -> bool:
        """Whether the log began with the state of another one, or with Storm's."""
        return bool(self.adopted or self.base)

    @property
    def follows_storm(self) -> bool:
        """Whether the next batch is the first after what Storm wrote."""
        return self.committed == self.base > 0 and not self.adopted

    def encode(self) -> bytes:
        """Return a line of JSON and a line with its CRC-32."""
        body = {_STORED_NAMES.get(name, name): getattr(self, name) for name in self.__slots__}
        body["exceptions"] = list(self.retried.items())
        line = json.dumps({"format": FORMAT, **body}, separators=(",", ":")).encode()
        return b"%s\n%08x\n" % (line, zlib.crc32(line))

    @staticmethod
    def last(data: bytes, path: str) -> LogEntry | None:
        """Return the last of the entries that `data`, read from `path`, encodes one by one.

        The end may be torn: cut off, or with zeros if a loss of power came before the data. A torn
        entry was never confirmed, so it doesn't count. Returns None if there is no other.

        Raises CorruptLogError for an entry that is damaged in another way, or of a format that this
        version doesn't read.
        """
        entries = _whole(data)
        for entry in entries[:-1]:
            _checked(entry, path)
        return LogEntry.decode(entries[-1], path) if entries else None

    @staticmethod
    def torn(data: bytes) -> int:
        """Return how many bytes at the end of `data` belong to no whole entry."""
        return len(data) - sum(map(len, _whole(data)))

    @staticmethod
    def decode(data: bytes, path: str) -> LogEntry:
        """Return the entry that `data`, read from `path`, encodes, or raise CorruptLogError."""
        try:
            body = json.loads(_checked(data, path))
            found = body.pop("format")
            if found != FORMAT:
                raise CorruptLogError(path, f"format {found}, this version reads {FORMAT}")
            body["begun"] = Token(*body["begun"])
            body["states"] = {name: Token(*token) for name, token in body["states"].items()}
            body["accepted"] = {
                name: None if token is None else Token(*token)
                for name, token in body.get("accepted", {}).items()
            }
            body["exceptions"] = dict(body["exceptions"])
            for name, stored in _STORED_NAMES.items():
                body[name] = body.pop(stored)
            body["adopted"] = tuple(body["adopted"])
            if body["successor"] is not None:
                body["successor"] = tuple(body["successor"])
            return LogEntry(**body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptLogError(path, f"not an entry ({error})") from error


@dataclass(frozen=True, slots=True)
class EncodedEntry:
    """An entry as it is stored: an entry's metadata may be changed in place meanwhile."""

    number: int
    data: bytes

    @staticmethod
    def of(entry: LogEntry) -> EncodedEntry:
        """Encode an entry."""
        return EncodedEntry(entry.number, entry.encode())


def plans_of_streams(planned: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what spouts have planned of a batch, without the keys that windows need."""
    return {stream: plan for stream, plan in planned.items() if stream not in (MOMENT, ACTIVE)}


def _whole(data: bytes) -> list[bytes]:
    """The entries of a file, without a torn one; each is a line, and a line with its checksum."""
    *lines, _ = data.split(b"\n")
    entries = [b"%s\n%s\n" % pair for pair in zip(lines[::2], lines[1::2], strict=False)]
    if entries and b"\0" in entries[-1]:
        entries.pop()
    return entries


def _checked(data: bytes, path: str) -> bytes:
    line, _, checksum = data.partition(b"\n")
    if checksum != b"%08x\n" % zlib.crc32(line):
        raise CorruptLogError(path, f"truncated or damaged, {len(data)} bytes")
    return line


def check_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of `metadata`, if the log can keep it.

    The log remembers the copy, as the spout may change its own in place.

    Raises MetadataError if the log would give back something else.

    Examples
    --------
    >>> check_metadata({"words": {"offset": 3}})
    {'words': {'offset': 3}}
    """
    kept = {}
    for stream, value in metadata.items():
        try:
            kept[stream] = json.loads(json.dumps(value, allow_nan=False))
            same = _plain(value) and kept[stream] == value
        except (ValueError, TypeError):
            same = False
        if not same:
            raise MetadataError(stream, f"{value!r:.200}")
    return kept


def _plain(value: Any) -> bool:
    # By exact type: json silently makes lists of tuples, and strings of integer keys.
    if type(value) is list:
        return all(map(_plain, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_plain, value.values()))
    return value is None or type(value) in (bool, int, float, str)
