"""Batches that are computed and not committed yet, as files beside the log."""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from trident.log.errors import LogUnavailableError, StagingError
from trident.log.folders import make_folder, sync_folder

FORMAT = 1
_FILE = re.compile(r"(\d{20})-\w+\.staged")
_CHECKSUM = 9
"""The bytes of the last line: a CRC-32 in hexadecimal digits, and the end of the line."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A computed batch as it is staged: for any attempt, by whichever driver commits it.

    `digest` is of what the batch covers, by the source; `parts` are what the engine needs to update
    each state, by the state's name.
    """

    log_id: str
    query_id: str
    txid: int
    digest: str
    parts: Mapping[str, bytes | memoryview] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.txid:020d}-{self.digest[:16]}.staged"

    def encode(self) -> Iterator[bytes | memoryview]:
        """Yield a line of JSON, the parts, and a line with the CRC-32 of all that."""
        header = {
            "format": FORMAT,
            "log_id": self.log_id,
            "query_id": self.query_id,
            "txid": self.txid,
            "digest": self.digest,
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
                raise _damaged(path, f"format {found}, this version reads {FORMAT}")
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

    The folder has to be on a local file system that has hard links.

    A file gets its name when it is written and synced, so none is ever torn, and only where no
    other has that name: of two drivers one stages the batch, and the other stops.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stage(self, batch: StagedFile) -> None:
        """Make a batch durable; it may be called again with the same one.

        Raises StagingError where another run has staged it with other content. After a
        LogUnavailableError the batch may be staged or not.
        """
        try:
            self._stage(batch)
        except OSError as error:
            raise LogUnavailableError(str(self.folder), str(error)) from error

    def staged(self) -> list[StagedFile]:
        """Return what is staged, in the order of the txids; remove what was never finished.

        Raises StagingError for a file that isn't what was written, and for two of one batch.
        """
        try:
            paths = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
            for path in paths:
                if path.suffix == ".tmp":
                    path.unlink(missing_ok=True)
            found = [
                StagedFile.decode(path.read_bytes(), str(path))
                for path in paths
                if _FILE.fullmatch(path.name)
            ]
        except OSError as error:
            raise LogUnavailableError(str(self.folder), str(error)) from error
        for one, other in pairwise(found):
            if one.txid == other.txid:
                raise _damaged(str(self.folder), f"batch {one.txid} is in two files")
        return found

    def remove(self, batch: StagedFile) -> None:
        """Remove a batch that is committed; where that fails, the next start does it."""
        with suppress(OSError):
            (self.folder / batch.name).unlink()

    def _stage(self, batch: StagedFile) -> None:
        make_folder(self.folder)
        path = self.folder / batch.name
        temporary = self.folder / f"{secrets.token_hex(8)}.tmp"
        try:
            with temporary.open("xb") as file:
                for part in batch.encode():
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, path)
            except FileExistsError:  # perhaps by a call before, whose sync has failed
                if path.read_bytes() != temporary.read_bytes():
                    raise StagingError(
                        str(self.folder),
                        f"another run has staged batch {batch.txid}, with other content",
                        "This run stops and changes nothing more; two runs can't share a "
                        "checkpoint.",
                    ) from None
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self.folder)


def _damaged(path: str, found: str) -> StagingError:
    return StagingError(
        path,
        found,
        "Don't delete it: Spark does not make its batch again. Restore it from a backup of the "
        "checkpoint.",
    )
