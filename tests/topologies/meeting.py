"""Stores over a network, as far as plans know, of which two have to be asked before one answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import local
from typing import Any, Literal, Self

from tests.spark.files import FileMap, Files
from trident.states import MapStateFactory, OpaqueMap
from trident.states.asking import Wait
from trident.states.store import RoundTrips, Store
from trident.states.values import StateType


class _Asked(local):
    """How many reads a thread of this process has begun."""

    reads = 0


_ASKED = _Asked()


class MeetingMap(FileMap):
    """Answers where another one has been asked as well."""

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        raise AssertionError("a state was asked by itself")

    def ask(self, keys: Sequence[bytes]) -> Wait[list[bytes | None]]:
        _ASKED.reads += 1
        return partial(self._answer, keys)

    def _answer(self, keys: Sequence[bytes]) -> list[bytes | None]:
        assert _ASKED.reads % 2 == 0, "an answer was waited for before both states were asked"
        return super().multiGet(keys)


@dataclass(frozen=True)
class MeetingStore(Store):
    """A state of such a map."""

    folder: str
    hosted: Literal["driver", "executor"] = "executor"  # type: ignore[misc]
    map: type[FileMap] = MeetingMap
    calls = RoundTrips((1, 1), (2, 2))

    @property
    def identity(self) -> tuple[str, str, str]:
        return "files", self.folder, ""

    def named(self, prefix: str) -> Self:
        return self

    def open(self) -> FileMap:
        return self.map(Path(self.folder))


def filled(folder: Path, entries: dict[Any, Any], **options: Any) -> MapStateFactory:
    """A state with these entries, in a store as above."""
    folder.mkdir()
    state: Any = OpaqueMap.factory(Files(str(folder)), name=folder.name).makeState()
    state.beginCommit(1)
    state.multiPut([(key,) for key in entries], list(entries.values()))
    state.commit(1)
    state.close()
    return MapStateFactory(replace(MeetingStore(str(folder)), **options), StateType.OPAQUE)
