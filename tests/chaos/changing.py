"""A topology that is another one in each driver: what may change between two starts does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.state_spec import StateSpec
from trident.chaos.contender import (
    Contender,
    EpisodePlace,
    MapContender,
    OwnSpout,
    Reader,
    TopologyFunction,
    WordSource,
    run_here,
)
from trident.chaos.process import Life
from trident.chaos.record import Record
from trident.chaos.store import MapStore
from trident.chaos.truth import Key, Reading, Truth
from trident.chaos.ways import Way
from trident.chaos.word_count import topology as word_count
from trident.log.errors import ChangedTopologyError, LogMismatchError
from trident.operations.builtin import Count
from trident.operations.interfaces import CombinerAggregator
from trident.states.errors import CorruptStateError, StaleBatchError, UsageError
from trident.states.maps.factory import MapStateFactory

_FORMS = "long", "array<long>", "string"
VERSIONS = len(_FORMS)
_FIRST_NAME = "count"
_NAMES = (_FIRST_NAME, "counts", "tally")
_READ: Key = ("read", None)
_LATEST_LIFE = 30
"""The number of the driver by which values have their last form, at most."""


class Total(CombinerAggregator[Any]):
    """A sum of numbers: plain, as a list, or as a text, by its version."""

    def __init__(self, version: int) -> None:
        self.schema_version = version

    def init(self, tuple: Any) -> Any:
        return self._of(tuple[0])

    def combine(self, a: Any, b: Any) -> Any:
        return self._of(number(a) + number(b))

    def zero(self) -> Any:
        return self._of(0)

    def upgrade(self, value: Any, version: int) -> Any:
        assert type(value) is [int, list, str][version - 1]
        return self._of(number(value))

    def _of(self, total: int) -> Any:
        return [total, [total], str(total)][self.schema_version - 1]


def number(value: Any) -> int:
    """Return what a total comes to, whatever its form."""
    return int(value[0] if type(value) is list else value)


def add_up(numbers: Stream, by: str, state: MapStateFactory | str, name: str, version: int) -> None:
    """Add up the field ``n`` in a state that may have another name by now."""
    spec = StateSpec(state, name=name, renamed_from=_FIRST_NAME)
    kind = _FORMS[version - 1]
    numbers.groupBy(by).persistentAggregate(spec, "n", Total(version), f"total {kind}")


class Form(NamedTuple):
    """What a driver's topology is like."""

    version: int
    name: str
    parallelism: int
    both: bool
    """Whether it has the second stream too."""

    @classmethod
    def of(cls, seed: str, life: int) -> Form:
        """Return that of a driver by its number, which is 0 for a reader's."""
        if not life:
            return cls(VERSIONS, _FIRST_NAME, 1, both=True)
        raised = random.Random(f"{seed} versions").sample(range(2, _LATEST_LIFE), VERSIONS - 1)
        choose = random.Random(f"{seed} form {life}")
        version = 1 + sum(life >= each for each in raised)
        return cls(version, choose.choice(_NAMES), choose.randint(1, 4), both=life % 3 != 1)


@dataclass(frozen=True)
class OtherWords(Record):
    """Words that no other record has."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(f"other {word}" for word in super().words)


@dataclass(frozen=True)
class ChangedContender(MapContender):
    """The counts of two streams, the second of which comes, leaves and comes back.

    With `exchanged` it is there where it would not be otherwise. Two drivers run as `run` says, and
    the next two without Spark.
    """

    second: OwnSpout
    exchanged: bool = False

    def declare(self, place: EpisodePlace, source: Any, life: int) -> TridentTopology:
        form, state = Form.of(place.seed, life), self.fresh(place)
        made = TridentTopology()
        streams = [made.newStream("words", source)]
        if form.both != self.exchanged:
            streams.append(made.newStream("words2", self.second.make(place, life)))
        words = made.merge(*streams) if len(streams) > 1 else streams[0]
        ones = words.each("word", lambda word: [1], "n long").parallelismHint(form.parallelism)
        add_up(ones, "word", state, form.name, form.version)
        words.persistentAggregate(state, Count(), "read", name=_READ[0])
        return made

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        with super().reading(place, keys) as read:
            yield lambda: {key: value and number(value) for key, value in read().items()}

    def counts_all(self, life: Life) -> bool:
        return Form.of("", life.number).both

    def drive(self, place: EpisodePlace, life: Life) -> None:
        driver = replace(self, run=run_here) if life.number // 2 % 2 else self
        drive = MapContender.drive
        try:
            drive(driver, place, life)
        except ChangedTopologyError:
            raise
        except LogMismatchError:  # a batch is under way that has, or lacks, the second stream
            drive(replace(driver, exchanged=True), place, life)
            drive(driver, place, life)
        except CorruptStateError as error:
            if "schema_version" in str(error):  # another driver has gone on in a later form
                raise StaleBatchError(None, None) from error
            raise


class BothTruth(Truth):
    """What states hold after so many words of one record, and so many of another."""

    def __init__(self, *records: Record) -> None:
        self._parts = [Truth(_counted(record.words)) for record in records]
        self.whole = {_READ: sum(record.length for record in records)}
        for part in self._parts:
            self.whole |= part.whole

    def words_in(self, reading: Reading) -> int | None:
        own = [{key: reading.get(key) for key in part.keys} for part in self._parts]
        found = [part.words_in(each) for part, each in zip(self._parts, own, strict=True)]
        words = sum(each or 0 for each in found)
        return None if None in found or words != (reading.get(_READ) or 0) else words


def _counted(words: Sequence[str]) -> Iterator[Reading]:
    counts: dict[Key, int] = {}
    for word in words:
        key = (_FIRST_NAME, (word,))
        counts[key] = counts.get(key, 0) + 1
        yield {key: counts[key]}


class ChangedStore(MapStore):
    """Map states of a topology that changes between two starts."""

    takes_topology = False

    def truth(self, make: TopologyFunction, record: Record) -> Truth:
        return BothTruth(record, self._others(record))

    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> ChangedContender:
        return self._changed(name, self.factory(), way, source)

    def compared(self, way: Way, record: Record, source: WordSource) -> Sequence[Contender]:
        return [self._changed("kind=nontransactional", self.plain(), way, source)]

    def _changed(
        self, name: str, factory: MapStateFactory, way: Way, source: WordSource
    ) -> ChangedContender:
        if not isinstance(source, OwnSpout):
            advice = "Take --source opaque or transactional."
            raise UsageError("only spouts may come and go", "", (), advice)
        second = replace(source, record=self._others(source.record))
        return ChangedContender(name, source, way.run, factory, word_count, second)

    def _others(self, record: Record) -> Record:
        return OtherWords(f"{record.seed} others", record.length // 2, record.different)
