"""How drivers run: forked, without Spark; `trident.chaos.on_spark` has the other way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar

from trident.chaos.by_hand import Classical, CountedByHand
from trident.chaos.contender import (
    Contender,
    OwnSpout,
    RunTopology,
    WordSource,
    run_here,
)
from trident.chaos.record import Record
from trident.chaos.rounds import Episode
from trident.chaos.servers import Trouble
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory

MOST = 9
"""The most words of a batch."""


class Way:
    """How drivers run: forked from this process, which has everything loaded.

    `episode` is what happens to drivers.
    """

    on_spark: ClassVar[bool] = False
    source_name = "opaque"
    words = 1500
    episode: ClassVar[type[Episode]] = Episode

    @contextmanager
    def served(self, folder: Path) -> Iterator[Sequence[Trouble]]:
        """Run what drivers need besides; give what can happen to it."""
        yield ()

    def source(self, name: str, record: Record, folder: Path) -> AbstractContextManager[WordSource]:
        """Give the source of that name; raise UsageError if there is none."""
        if name.startswith("kafka:"):
            from trident.chaos.kafka_words import kafka_words

            return kafka_words(name, record, MOST, folder)
        if name not in ("opaque", "transactional"):
            raise UsageError("--source is", name, ["opaque", "transactional", "kafka:"])
        return nullcontext(OwnSpout(record, MOST, name))

    @property
    def run(self) -> RunTopology:
        """What runs a topology in the process of a driver."""
        return run_here

    def by_hand(self, record: Record, plain: MapStateFactory) -> Sequence[Contender]:
        """Return the same, written by hand, in ways that can't be exact."""
        return [each(record, MOST, plain) for each in (CountedByHand, Classical)]
