"""HBase killed in the middle of a batch: what was acknowledged stays, and the batch is redone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.hbase import HBaseServer
from tests.servers.promised import served
from trident.backends import hbase, hbase_connections
from trident.states.control import ControlRecord
from trident.states.errors import StateUnavailableError
from trident.states.snapshottable import SnapshottableMap
from trident.states.values import Token


def record(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("a1", Token(txid, attempt), txid - 1)


def write(state: SnapshottableMap, own: ControlRecord, **counts: int) -> None:
    """Begin an attempt and write what it has, as the driver and a task do."""
    state.control.begin(own)
    state.beginCommit(own)
    state.multiPut([(word,) for word in counts], list(counts.values()))
    state.commit(own)


def test_a_server_killed_in_a_batch_fails_the_attempt_and_the_next_is_exact(
    tmp_path: Path,
) -> None:
    with served("OWN_HBASE", lambda: HBaseServer(tmp_path)) as server:
        assert isinstance(server, HBaseServer)
        state = hbase.opaque(server.host, server.port, prefix="words", timeout=60).makeState()
        write(state, record(1), dog=1)
        state.control.ready(record(1))
        state.control.announce(record(1))
        write(state, record(2), dog=20, cat=20)
        server.kill()
        with pytest.raises(StateUnavailableError, match="hbase at 127.0.0.1"):
            state.control.ready(record(2))
        server.start()
        with pytest.raises(StateUnavailableError, match="the store restarted or lost writes"):
            state.control.ready(record(2))
        assert state.multiGet([("dog",), ("cat",)]) == [1, None]
        write(state, record(2, 1), dog=3)
        state.control.ready(record(2, 1))
        state.control.announce(record(2, 1))
        assert state.multiGet([("dog",), ("cat",)]) == [3, None]
        state.close()
        hbase_connections.close_idle()
