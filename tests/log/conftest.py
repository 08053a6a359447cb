"""Logs of every kind, each empty, which any number of drivers may open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.state_url import StateURL
from trident.log.checkpoint import Place, hold_checkpoint
from trident.log.file_log import FileLog
from trident.log.held import HeldCheckpoint
from trident.log.log import Log, MemoryLog
from trident.log.stored_checkpoint import StoredLog

Open = Callable[[], Log]
"""Opens the log of one test, as another driver does."""

_SERVERS = {
    "redis": ("redis_server", "?prefix="),
    "redis cluster": ("redis_cluster", "?prefix="),
    "zookeeper": ("zookeeper_server", "/tests/"),
    "seaweedfs": ("seaweedfs_server", "/tests/"),
}
_FEWER = {
    "azurite": ("azurite_server", "/tests/"),
    "google": ("google_store", "/tests/"),
}
"""Stores that only the contract of logs is tried on."""


def new_url(request: pytest.FixtureRequest, kind: str) -> str:
    """Return the URL of a checkpoint that isn't there yet."""
    server, named = (_SERVERS | _FEWER)[kind]
    place, mark, options = request.getfixturevalue(server).url.partition("?")
    return f"{place}{named}{uuid4().hex}{mark}{options}"


@pytest.fixture(params=_SERVERS)
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a new checkpoint in a store of each kind."""
    return new_url(request, request.param)


@pytest.fixture(params=["file", "memory", *_SERVERS, *_FEWER])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a new log of each kind."""
    if request.param == "file":
        yield lambda: FileLog(tmp_path / "log")
    elif request.param == "memory":
        log = MemoryLog("log")
        yield lambda: log
    else:
        with ExitStack() as opened:
            yield opening(new_url(request, request.param), opened)


def opening(url: str, opened: ExitStack) -> Open:
    """Return what opens the log of a checkpoint by URL, until `opened` ends."""

    def open_one() -> Log:
        store = checkpoint_from_url(StateURL.parse(url))
        opened.callback(store.release)
        return StoredLog(store, "a/b")

    return open_one


def open_checkpoint(place: Place, groups: Mapping[str, Collection[str]]) -> HeldCheckpoint:
    """The checkpoint at a place, as a start of these groups holds it."""
    with ExitStack() as undo:
        held = hold_checkpoint(place)
        undo.callback(held.release)
        held.check_groups(groups)
        undo.pop_all()
    return held
