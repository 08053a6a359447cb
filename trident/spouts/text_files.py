"""Lines of text files, each file a partition."""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NotRequired, TypedDict

from trident.errors import SourceUnavailableError, TridentError, described
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import SpoutKind
from trident.spouts.partitioned import (
    IPartitionedTridentSpout,
    ISpoutPartition,
    PartitionCoordinator,
    TransactionalPartitionEmitter,
)
from trident.states.values import Token
from trident.tuples.fields import Fields, FieldsLike

Span = TypedDict(
    "Span", {"from": int, "to": int, "ends": NotRequired[int], "ended": NotRequired[bool]}
)
"""The bytes of a batch in a file, a checksum of the last of them, to tell another file by, and
whether it ended there."""
_ENDS = 64
"""Of how many bytes that is."""


@dataclass(eq=False, repr=False)
class TextFileError(TridentError):
    """A file has changed, or holds something else than text."""

    path: str
    """The file."""
    offset: int
    """Where in it, in bytes."""
    problem: str
    """What was found."""
    advice: str
    """The next step."""

    _template = "{path}, byte {offset}: {problem}. {advice}"


class TextFileSpout(IPartitionedTridentSpout):
    """Emits the lines of text files, and of those that are added or appended to later.

    Parameters
    ----------
    path : str or path
        A file, or a pattern as of ``glob`` (``logs/*.txt``, ``**`` for any folders).
    field : Fields
        The name of the line's field.
    batch_bytes : int
        About how many bytes of each file a batch holds at most; a longer line comes whole.
    follow : bool
        Whether lines are still being written: then a line without an end waits for a later batch.
        By default the end of a file ends its last line.

    Raises
    ------
    ValueError
        When `batch_bytes` is not above 0, `path` is a folder, or `field` is not one string.

    Notes
    -----
    Each file is a partition, named by its path. On Spark executors read them, so each must have
    them all. Lines are UTF-8 and end in a line feed, with or without a carriage return; a byte
    order mark at the beginning is skipped. The log remembers how far each file was read: files may
    be appended to and removed, but neither shortened nor written anew. A batch waits for a file
    that is given by its name, and not by a pattern.

    Examples
    --------
    >>> spout = TextFileSpout("logs/*.txt", "line string")
    >>> spout.kind, spout.getOutputFields().names
    ('transactional', ('line',))
    """

    kind: ClassVar[SpoutKind] = "transactional"

    def __init__(
        self,
        path: str | os.PathLike[str],
        field: FieldsLike = "line string",
        *,
        batch_bytes: int = 4 << 20,
        follow: bool = False,
    ) -> None:
        if type(batch_bytes) is not int or batch_bytes < 1:
            found = described(batch_bytes)
            raise ValueError(f"TextFileSpout: batch_bytes is above 0, found {found}")
        self._pattern = os.path.abspath(path)
        if os.path.isdir(self._pattern):
            raise ValueError(
                f"TextFileSpout: {self._pattern} is a folder. Name its files: "
                f"{os.path.join(self._pattern, '*')}"
            )
        self._fields = line_field("TextFileSpout", field)
        self._batch_bytes = batch_bytes
        self._follow = follow

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> PartitionCoordinator:
        return _Files(self._pattern)

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> TransactionalPartitionEmitter:
        return _Lines(self._fields.names[0], self._batch_bytes, self._follow)

    def getOutputFields(self) -> Fields:
        return self._fields


@dataclass(frozen=True)
class _File:
    path: str

    def getId(self) -> str:
        return self.path


class _Files(PartitionCoordinator):
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def getPartitionsForBatch(self) -> list[str]:
        # The path of an existing file is taken literally, even if it looks like a pattern.
        if os.path.isfile(self._pattern) or not glob.has_magic(self._pattern):
            return [self._pattern]
        found = glob.iglob(self._pattern, recursive=True)
        return sorted(path for path in found if os.path.isfile(path))

    def ended(self, metadata: Mapping[str, Span]) -> Collection[str]:
        return {path for path, span in metadata.items() if span.get("ended")}


class _Lines(TransactionalPartitionEmitter):
    def __init__(self, field: str, batch_bytes: int, follow: bool) -> None:
        self._field = field
        self._batch_bytes = batch_bytes
        self._follow = follow

    def getOrderedPartitions(self, allPartitionInfo: Any) -> Sequence[ISpoutPartition]:
        return [_File(path) for path in allPartitionInfo]

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Span:
        path = partition.getId()
        last = lastMetadata or {}
        start = last.get("to", 0)
        before, data, to_end = _read(path, start, self._batch_bytes)
        if zlib.crc32(before) != last.get("ends", zlib.crc32(before)):
            raise _other(path, start)
        end = data.rfind(b"\n") + 1
        while not end and not to_end:  # a line that is longer than a batch
            read = len(data)
            _, more, to_end = _read(path, start + read, read)
            data += more
            end = data.find(b"\n", read) + 1
        if to_end and not self._follow:
            end = len(data)
        self._emit(path, start, data[:end], collector)
        span: Span = {"from": start, "to": start + end, "ends": _ends(before, data[:end])}
        return {**span, "ended": True} if to_end and not self._follow else span

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, metadata: Any
    ) -> None:
        path, start, size = partition.getId(), metadata["from"], metadata["to"] - metadata["from"]
        before, data, _ = _read(path, start, size)
        if len(data) < size:
            raise _shorter(path, metadata["to"], start + len(data))
        ends = _ends(before, data)
        if ends != metadata.get("ends", ends):
            raise _other(path, metadata["to"])
        self._emit(path, start, data, collector)

    def _emit(self, path: str, start: int, data: bytes, collector: SpoutCollector) -> None:
        if not data:
            return
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise TextFileError(
                path,
                start + error.start,
                f"the byte 0x{data[error.start]:02x} is no UTF-8 ({error.reason})",
                "Convert the file to UTF-8, and give it another name.",
            ) from None
        if not start:
            text = text.removeprefix("\ufeff")
        lines = text.removesuffix("\n").split("\n")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        collector.emitColumns({self._field: lines})


def _read(path: str, start: int, size: int) -> tuple[bytes, bytes, bool]:
    """The bytes directly before `start` in a file, up to `size` bytes from there, and whether the
    file ends after them."""
    before = min(start, _ENDS)
    try:
        with open(path, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if length < start:
                raise _shorter(path, start, length)
            file.seek(start - before)
            return file.read(before), file.read(size), not file.read(1)
    except OSError as error:
        raise SourceUnavailableError(path, error.strerror or str(error)) from error


def _ends(before: bytes, data: bytes) -> int:
    return zlib.crc32((before + data[-_ENDS:])[-_ENDS:])


def _shorter(path: str, read: int, length: int) -> TextFileError:
    return TextFileError(
        path,
        length,
        f"the file ends here, and was read up to byte {read}",
        "Restore it, or start with a new checkpoint and new states, as what was read may be "
        "counted.",
    )


def _other(path: str, end: int) -> TextFileError:
    return TextFileError(
        path,
        end,
        "the bytes before it are not those that were read: the file was written anew",
        "Restore it, and give the new file another name.",
    )


def line_field(spout: str, field: FieldsLike) -> Fields:
    """Return the field of a line.

    Raises ValueError if it isn't one field, or is declared as anything but a string.

    Examples
    --------
    >>> line_field("TextFileSpout", "line string").names
    ('line',)
    """
    fields = Fields.of(field)
    if len(fields) != 1:
        found = ", ".join(fields.names) or "none"
        raise ValueError(f'{spout}: a line is one field, found {found}. Write "line string".')
    [name] = fields.names
    if fields.types[name] not in ("string", None):
        found = f"{name} {fields.types[name]}"
        raise ValueError(f'{spout}: a line is a string, found "{found}". Convert it by each(…).')
    return fields
