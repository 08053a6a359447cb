"""What all contenders share in a run: the text, a Spark session, a Redis server, a folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_hand import total_of
from benchmarks.sizes.cases import Case, Effort
from benchmarks.words import zipf_words
from trident.testing.servers.redis import RedisServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A_LINE = 10
UNTIMED = 2
"""The batches before the timed ones: every word once, and one to warm up."""
_POOL = 4_000_000


@dataclass(frozen=True)
class Text:
    """Lines of ten words, Zipf over `keys` distinct ones.

    Parameters
    ----------
    every : sequence of str
        Lines that hold every word once.
    pool : sequence of str
        Lines that batches are taken from, from the beginning again at its end.
    """

    every: Sequence[str]
    pool: Sequence[str]

    def batch(self, number: int, words: int) -> Sequence[str]:
        """Return a batch of so many words; the one numbered 0 holds every word once."""
        if number == 0:
            return self.every
        share = words // A_LINE
        start = (number - 1) * share % len(self.pool)
        return self.pool[start : start + share]


def text_of(keys: int) -> Text:
    """Make the text of so many distinct words."""
    words = [f"word{number}" for number in range(keys)]
    return Text(_lines(words), _lines(zipf_words(_POOL, keys)))


def _lines(words: Sequence[str]) -> Sequence[str]:
    return [" ".join(words[start : start + A_LINE]) for start in range(0, len(words), A_LINE)]


@dataclass(frozen=True)
class Place:
    """Where one case keeps what it writes: a folder, and a prefix of keys in Redis."""

    folder: Path

    @property
    def prefix(self) -> str:
        return self.folder.name

    @property
    def database(self) -> Path:
        return self.folder / "counts.db"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"


class Setting:
    """What the contenders of a run share; made when it is first asked for.

    Parameters
    ----------
    folder : Path
        Of the run.
    effort : Effort
        How long it may take.
    """

    def __init__(self, folder: Path, effort: Effort) -> None:
        self.effort = effort
        self._folder = folder
        self._numbers = count()
        self._text: tuple[int, Text] | None = None
        self._closing = ExitStack()

    @cached_property
    def spark(self) -> SparkSession:
        from trident.spark import local_session

        # A JVM's own 1 GB doesn't hold a first batch of ten million keys.
        session = local_session(**{"spark.driver.memory": "6g"})
        self._closing.callback(session.stop)
        return session

    @cached_property
    def redis(self) -> RedisServer:
        return self._closing.enter_context(RedisServer(self._folder / "redis"))

    def text(self, keys: int) -> Text:
        """Return the text of so many distinct words; that of the last case is kept."""
        if self._text is None or self._text[0] != keys:
            self._text = keys, text_of(keys)
        return self._text[1]

    def files(self, case: Case) -> Path:
        """Return a folder with a file for each batch of a case, for Spark's source of text."""
        folder = self._folder / f"text-{case.words}-{case.keys}"
        if not folder.exists():
            folder.mkdir()
            text = self.text(case.keys)
            for number in range(UNTIMED + self.effort.timed(case.words)):
                lines = text.batch(number, case.words)
                (folder / f"{number:04}.txt").write_text("\n".join(lines) + "\n")
        return folder

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Make a place of its own for a case, and remove what it wrote."""
        place = Place(self._folder / f"run-{next(self._numbers)}")
        place.folder.mkdir()
        try:
            yield place
        finally:
            shutil.rmtree(place.folder)
            if "redis" in vars(self):
                self.redis.cli("flushall")

    def check(self, case: Case, place: Place, batches: int, column: str, table: str) -> None:
        """See that every word of `batches` batches was counted once, where another can look."""
        expected = case.keys + (batches - 1) * case.words
        if case.store == "SQLite":
            total = total_of(place.database, table, column)
        elif case.store == "Redis":
            total = self._total(place.prefix)
        else:
            return
        assert total == expected, f"{case}: {total:,} words were counted, of {expected:,}"

    def _total(self, prefix: str) -> int:
        """The sum of the counts in Redis: bare numbers, or entries ``[token,count,before]``."""
        from redis import Redis

        with Redis(port=self.redis.port) as client:
            keys = [key for key in client.keys(f"{prefix}:*") if b"\0" not in key]
            values = client.mget(keys)
        return sum(int(value.split(b",")[1] if b"," in value else value) for value in values)

    def close(self) -> None:
        self._closing.close()
