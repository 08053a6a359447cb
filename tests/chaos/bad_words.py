"""Words that a step fails with: each is to become one dead letter, and none is to be counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from trident.api.topology import TridentTopology
from trident.chaos.contender import (
    EpisodePlace,
    MapContender,
    Reader,
    TopologyFunction,
    WordSource,
    open_states,
    truth_of,
)
from trident.chaos.record import Record
from trident.chaos.store import MapStore
from trident.chaos.truth import Key, Reading, Truth
from trident.chaos.ways import Way
from trident.chaos.word_count import topology as word_count
from trident.operations.builtin import Count
from trident.operations.letter_folder import LetterFolder
from trident.plan.dead_letters import PREFIX, with_dead_letters
from trident.spouts.dead_letters import read_letters
from trident.states.errors import NoStateError
from trident.states.keys import decode_key
from trident.states.state import StateFactory

_NTH = 5
"""One of so many words is bad."""
_LETTERS = "letters"


def is_bad(word: str) -> bool:
    """Whether a word of the record is bad."""
    return int(word.removeprefix("w")) % _NTH == 0


def checked(word: str) -> bool:
    """Keep a word, or fail with it."""
    if is_bad(word):
        raise ValueError("a bad word")
    return True


def topology(source: Any, state: Any) -> TridentTopology:
    """Count the words that are not bad."""
    made = TridentTopology()
    words = made.newStream("words", source).filter("word", checked).groupBy("word")
    words.persistentAggregate(state, Count(), "count", name="count").parallelismHint(2)
    return made


def counted_apart(source: Any, state: Any) -> TridentTopology:
    """Make the truth: of each word that is bad there are as many letters."""
    made = TridentTopology()
    words = made.newStream("words", source)
    for name, bad in (("count", False), (_LETTERS, True)):
        kept = words.filter("word", lambda word, bad=bad: is_bad(word) is bad)
        kept.groupBy("word").persistentAggregate(state, Count(), "count", name=name)
    return made


@dataclass(frozen=True)
class LettersContender(MapContender):
    """Map states, and the letters of bad words: in a map beside them, or `in_folder`."""

    in_folder: bool = False

    @property
    def reads_whole(self) -> bool:  # type: ignore[override]
        """Whether letters and counts are read as of one batch."""
        return super().reads_whole and not self.in_folder

    def options(self, place: EpisodePlace) -> dict[str, Any]:
        return {"on_error": "dead-letter", "dead_letters": self._letters(place)}

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        plan = self.plan(place)
        letters = self._letters(place)
        if not self.in_folder:
            plan = with_dead_letters(replace(plan, on_error="dead-letter"), letters)
        with open_states(plan) as states:

            def query(views: Mapping[str, Any]) -> Reading:
                found: Counter[Key] = Counter()
                for name, view in views.items():
                    for encoded, value in view.entries():
                        if value is None:
                            continue  # it is not committed
                        if name.startswith(PREFIX):
                            word = json.loads(value["tuple"])["word"]
                            found[_LETTERS, (word,)] += 1
                        else:
                            found[name, decode_key(encoded)] = value
                return found

            def read() -> Reading:
                found = states.read(query)
                return found if not self.in_folder else {**found, **_in_folder(letters)}

            yield read

    def _letters(self, place: EpisodePlace) -> StateFactory:
        if self.in_folder:
            return LetterFolder(place.folder / "letters")
        return self.fresh(place)


def _in_folder(letters: StateFactory) -> Reading:
    with closing(letters.named(f"{PREFIX}words").makeState()) as state:
        try:
            found = read_letters(state)
        except NoStateError:
            return {}
        return Counter((_LETTERS, (letter.tuple["word"],)) for letter in found)


class LettersStore(MapStore):
    """Map states, one of which keeps the letters of bad words."""

    takes_topology = False
    in_folder: ClassVar[bool] = False

    def truth(self, make: TopologyFunction, record: Record) -> Truth:
        return truth_of(counted_apart, record)

    def truth_of_compared(self, record: Record) -> Truth:
        return truth_of(word_count, record)

    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> LettersContender:
        return LettersContender(name, source, way.run, self.factory(), topology, self.in_folder)


class LetterFilesStore(LettersStore):
    """The same, with the letters in a folder."""

    in_folder = True
