"""A store of your own: two methods, made exact by `OpaqueMap`; and what a fence adds.

    python examples/custom_backing_map.py

First a batch fails half-way and comes back with other words: two methods are enough. Then a task
hangs right before it writes, and wakes up when its batch is long done: that takes a fence.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from custom_backing_map_luck import Queue, Unlucky

from trident import Count, IBatchSpout, Split, TridentTopology
from trident.errors import FailedException, StaleBatchError
from trident.states import IBackingMap, OpaqueMap, encode_keys


class FolderMap(IBackingMap):
    """Keeps each value in a file. The two methods, over bytes, are all that a store needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        files = [self._file(key) for key in keys]
        return [file.read_bytes() if file.exists() else None for file in files]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for key, value in zip(keys, values, strict=True):
            new = self.folder / f"{uuid4().hex}.new"  # nobody ever reads half a value
            new.write_bytes(value)
            new.replace(self._file(key))

    def _file(self, key: bytes) -> Path:
        return self.folder / hashlib.sha256(key).hexdigest()


class FencedFolderMap(FolderMap):
    """The same, with a fence: its writes look at the control record under a lock."""

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        with self._locked():
            return super().putControl(new, expected)

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        with self._locked():
            if self.getControl() != fence:
                return False
            self.multiPut(keys, values)
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
            yield


def word_count(lines: IBatchSpout, open_map: Callable[[], IBackingMap]) -> TridentTopology:
    """Describe a word count that is kept in the maps that `open_map` makes."""
    topology = TridentTopology()
    (
        topology.newStream("lines", lines)
        .each("line", Split(), "word")
        .groupBy("word")
        .persistentAggregate(OpaqueMap.factory(open_map), Count(), "count")
    )
    return topology


def fail_halfway(folder: Path) -> None:
    """Count lines on a store that breaks off once, from a queue that then gives other lines."""
    lines = ["the cat sat", "the man sat", "the dog ran", "the man ran", "the cow ran"]
    outages = ["the store broke off"]

    def break_off(keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        if b"dog" in keys and outages:
            arrived = keys.index(b"dog") + 1
            FolderMap(folder).multiPut(keys[:arrived], values[:arrived])
            raise FailedException(f"{outages.pop()} after {arrived} of {len(keys)} words")

    topology = word_count(Queue(lines), lambda: Unlucky(FolderMap(folder), break_off))
    with topology.start() as run:
        run.processAllAvailable()
    truth = Counter(" ".join(lines).split())
    print(f"  counted: {counts(FolderMap(folder), truth)}")
    print(f"  truth:   {in_a_line(truth)}")


def wake_up_late(store: FolderMap) -> str:
    """Return the counts after a task wrote late: its batch was done again while it hung."""
    count(store, 1, ["the", "cat"])
    hanging = Unlucky(store, lambda *_: count(store, 2, ["the", "dog"]))
    with suppress(StaleBatchError):
        count(hanging, 2, ["the", "dog"])
    return counts(store, ["the", "cat", "dog"])


def count(store: IBackingMap, txid: int, words: Sequence[str]) -> None:
    """Do what a task does for its words of a batch; a txid once more is its next attempt."""
    state = OpaqueMap(store)
    state.beginCommit(txid)
    state.multiFold(encode_keys([word] for word in words), [1] * len(words), Count())
    state.commit(txid)


def counts(store: IBackingMap, words: Iterable[str]) -> str:
    """Return what a query finds."""
    words = list(words)
    found = OpaqueMap(store).multiGet([word] for word in words)
    return in_a_line({word: count or 0 for word, count in zip(words, found, strict=True)})


def in_a_line(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{word} {count}" for word, count in counts.items())


def main() -> None:
    logging.basicConfig(format="    %(message)s", stream=sys.stdout)  # why a batch is retried
    with tempfile.TemporaryDirectory() as folder:
        print("A batch fails half-way, and comes back with other words:")
        fail_halfway(Path(folder))
    print("\nA task hangs right before it writes, and wakes up when its batch is done:")
    with tempfile.TemporaryDirectory() as folder:
        found = wake_up_late(FolderMap(Path(folder)))
        print(f"  two methods: {found}   what it wrote late took the batch's place")
    with tempfile.TemporaryDirectory() as folder:
        found = wake_up_late(FencedFolderMap(Path(folder)))
        print(f"  and a fence: {found}   its write was refused")
    print("  truth:       the 2  cat 1  dog 1")


if __name__ == "__main__":
    main()
