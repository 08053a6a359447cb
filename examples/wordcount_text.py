"""The text that `wordcount.py` counts: a folder, one file, or the documentation Python carries."""

from __future__ import annotations

import hashlib
import os
import pydoc_data.topics
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


class Refused(Exception):
    """The text cannot be counted; says why and what to do."""


@dataclass(frozen=True)
class Text:
    """A file, or a folder with everything below it.

    Parameters
    ----------
    path : pathlib.Path
        Where it is, links resolved: it is also what the count is remembered under.
    files : int
        How many files Spark will see.
    """

    path: Path
    files: int

    @property
    def pattern(self) -> str:
        """What Spark is to load: a pattern that matches this path alone.

        A stream reads folders. The pattern of a file lists that file and nothing else of its
        folder, where `pathGlobFilter` makes Spark list all that lies below, for every batch.
        """
        if self.path.is_dir():
            return _literal(self.path)
        return f"{_literal(self.path.parent)}/{{{_literal(self.path.name)}}}"

    @property
    def name(self) -> str:
        """A folder name that belongs to this path alone."""
        readable = re.sub(r"[^A-Za-z0-9]+", "-", self.path.name).strip("-")[:40] or "root"
        return f"{readable}-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:10]}"

    def refuse_to_hold(self, folder: Path) -> None:
        """Refuse a folder that would count what counting writes."""
        if self.path.is_dir() and folder.resolve().is_relative_to(self.path):
            raise Refused(
                f"The counts are kept in {folder}, inside the text. "
                "Keep them elsewhere: make wordcount INPUT=… DATA=folder"
            )


def find_text(path: Path) -> Text:
    """Look at what was asked for; refuse what Spark could not read."""
    if not path.exists():
        raise Refused(f"There is no {path}. Name a file or a folder of text: INPUT=path")
    path = path.resolve()
    if path.is_file() and _is_hidden(path.name):
        raise Refused(f"Spark passes over files named like {path.name}: rename it, or link to it.")
    files = 0
    for file in [path] if path.is_file() else _files_below(path):
        if not os.access(file, os.R_OK):
            raise Refused(f"{file} cannot be read: allow it, or count another folder.")
        files += 1
    if not files:
        raise Refused(f"{path} has no files yet: put some text there, and run this again.")
    return Text(path, files)


def write_documentation(folder: Path) -> Path:
    """Write the language reference that every CPython carries, a file a topic; may be repeated."""
    folder.mkdir(parents=True, exist_ok=True)
    for topic, text in pydoc_data.topics.topics.items():
        file = folder / f"{topic}.txt"
        if not file.exists():
            unfinished = folder / f".{topic}"  # Spark passes over it
            unfinished.write_text(text, encoding="utf-8")
            unfinished.rename(file)
    return folder


def _files_below(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise Refused(f"{error.filename} cannot be listed ({error.strerror}).")

    for at, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (Path(at, name) for name in files if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _literal(path: Path | str) -> str:
    return re.sub(r"([\\*?\[\]{},^])", r"\\\1", str(path))
