"""The answers to requests that have updated states, kept for those that are repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.states.map_state import MapState
from trident.states.sharding import shard_of
from trident.states.updaters import ValueUpdater

KEPT = 600.0
"""Seconds for which an answer is kept at least."""
_SLOTS = 2**16
"""Keys of the state: an answer that is too old goes when another one comes to its key."""


class KeptAnswer(NamedTuple):
    """The answer to a request, with a digest of what was `asked`, and when, in milliseconds."""

    id: str
    asked: str
    answer: str
    at: int


class KeptAnswers(StateUpdater[MapState]):
    """Keeps answers in a map: under each of a fixed number of keys those of some requests.

    It is handed no tuples of the stream: what answers the requests hands it their answers, as the
    last update of their batch.
    """

    def updateState(
        self, state: MapState, tuples: Sequence[Sequence[Any]], collector: TridentCollector
    ) -> None:
        """Keep answers, each a `KeptAnswer`."""
        kept = [KeptAnswer(*each) for each in tuples]
        state.multiUpdate([_key(each.id) for each in kept], [_Keep(each) for each in kept])

    def known(self, state: MapState, ids: Iterable[str]) -> Mapping[str, KeptAnswer]:
        """The answers to those of some requests that have been answered."""
        asked = dict.fromkeys(ids)
        keys = dict.fromkeys(map(_key, asked))
        found = [KeptAnswer(*each) for kept in state.multiGet(keys) for each in kept or ()]
        return {each.id: each for each in found if each.id in asked}


def digest(args: str) -> str:
    """What tells the arguments of a request from others."""
    return hashlib.blake2b(args.encode(errors="surrogatepass"), digest_size=16).hexdigest()


class _Keep(ValueUpdater):
    """Adds an answer to those of its key, and drops the old ones."""

    def __init__(self, kept: KeptAnswer) -> None:
        self._kept = kept

    def update(self, stored: Any) -> Any:
        oldest = self._kept.at - int(KEPT * 1000)
        recent = [each for each in stored or () if each[3] >= oldest and each[0] != self._kept.id]
        return [*recent, list(self._kept)]


def _key(id: str) -> tuple[int]:
    return (shard_of(id.encode(), _SLOTS),)
