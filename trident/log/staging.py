"""Computed batches that are not committed yet, as files beside the log."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from trident.log.errors import LogUnavailableError, StagingError
from trident.log.folders import Folder

FORMAT = 4
_FILE = re.compile(r"(\d{20})-\d{20}\.staged")
_CHECKSUM = 9
"""The bytes of the last line: a CRC-32 in hexadecimal digits, and the end of the line."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A computed batch as it is staged: any driver may commit it, in any attempt."""

    log_id: str
    claim: int
    query_id: str
    txid: int
    digest: str
    before: str | None
    parts: Mapping[str, bytes | memoryview] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    """What its steps have counted."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.txid:020d}-{self.claim:020d}.staged"

    def encode(self) -> Iterator[bytes | memoryview]:
        """Yield a line of JSON, the parts, and a line with the CRC-32 of all that."""
        header = {
            "format": FORMAT,
            "log_id": self.log_id,
            "claim": self.claim,
            "query_id": self.query_id,
            "txid": self.txid,
            "digest": self.digest,
            "before": self.before,
            "counts": dict(self.counts),
            "parts": [[name, len(part)] for name, part in self.parts.items()],
        }
        checksum = 0
        for each in (json.dumps(header).encode() + b"\n", *self.parts.values()):
            checksum = zlib.crc32(each, checksum)
            yield each
        yield b"%08x\n" % checksum

    @staticmethod
    def decode(data: bytes, path: str) -> StagedFile:
        """Return the batch that `data`, read from `path`, encodes, or raise StagingError."""
        whole = memoryview(data)
        if data[-_CHECKSUM:] != b"%08x\n" % zlib.crc32(whole[:-_CHECKSUM]):
            raise _damaged(path, f"truncated or damaged, {len(data)} bytes")
        try:
            line, _, _ = data.partition(b"\n")
            header = json.loads(line)
            if (found := header.pop("format")) != FORMAT:
                advice = "Start and stop it with the version that staged it, which commits it."
                raise StagingError(path, f"format {found}, this version reads {FORMAT}", advice)
            lengths = header.pop("parts")
            ends = accumulate((length for _, length in lengths), initial=len(line) + 1)
            names = [name for name, _ in lengths]
            parts = {
                name: whole[start:end]
                for name, (start, end) in zip(names, pairwise(ends), strict=True)
            }
            return StagedFile(**header, parts=parts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(path, f"not a staged batch ({error})") from error


class StagingArea:
    """The staged batches of a group, a file each.

    A file exists as a whole or not at all, and its name says which run has written it. So an
    overtaken run replaces nothing: of the files of a batch only that of the last run counts.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._found: list[str] = []

    def stage(self, batch: StagedFile) -> None:
        """Make a batch durable; may be repeated after a LogUnavailableError."""
        self.folder.write(batch.name, batch.encode())

    def staged(self) -> list[StagedFile]:
        """Return the staged batches, in the order of their txids; remove unfinished files.

        The other files of a batch stay until it is committed: a later run may have listed them, and
        not the one that replaces them. Raises StagingError for a damaged file.
        """
        self._found = names = sorted(self.folder.names())
        for name in names:
            if name.endswith(".tmp"):
                self.folder.remove(name)
        latest = {txid: name for name in names if (txid := _txid_in(name)) is not None}.values()
        return [
            StagedFile.decode(data, f"{self.folder.place}/{name}")
            for name in latest
            if (data := self.folder.read(name)) is not None
        ]

    def remove(self, batch: StagedFile) -> None:
        """Remove all files of a committed batch; the next start removes any that remain."""
        others = (name for name in self._found if _txid_in(name) == batch.txid)
        with suppress(LogUnavailableError):
            for name in {*others, batch.name}:
                self.folder.remove(name)


def _txid_in(name: str) -> int | None:
    """The batch of a staged file; None for any other file."""
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else None


def _damaged(path: str, found: str) -> StagingError:
    return StagingError(
        path,
        found,
        "Don't delete it: Spark does not make its batch again. Restore it from a backup of the "
        "checkpoint.",
    )
