"""The answers to requests that have updated states, kept for those that are repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.states.maps.stored_map import StoredMap

KEPT = 600.0
"""Seconds for which an answer is kept."""


class KeptAnswer(NamedTuple):
    """The answer to a request.

    `asked` is a digest of the request's arguments.
    """

    id: str
    asked: str
    answer: str


class KeptAnswers(StateUpdater[StoredMap]):
    """Keeps answers in a map, under a digest of each request's id, until they expire.

    It is handed no tuples of the stream: what answers the requests hands it their answers, as the
    last update of their batch.
    """

    def updateState(
        self, state: StoredMap, tuples: Sequence[Sequence[Any]], collector: TridentCollector
    ) -> None:
        """Keep answers, each a `KeptAnswer`."""
        state.expire(int(KEPT * 1000))
        kept = [KeptAnswer(*each) for each in tuples]
        state.multiPut([_key(each.id) for each in kept], [list(each) for each in kept])

    def known(self, state: StoredMap, ids: Iterable[str]) -> Mapping[str, KeptAnswer]:
        """The answers to those of some requests that have been answered."""
        found = state.multiGet(dict.fromkeys(map(_key, ids)))
        return {each[0]: KeptAnswer(*each) for each in found if each is not None}


def digest(text: str) -> str:
    """What tells the arguments of a request, or its id, from others."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _key(id: str) -> tuple[str]:
    return (digest(id),)
