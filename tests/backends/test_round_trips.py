"""How often a batch asks its store, whatever the store."""

from __future__ import annotations

import pytest

from tests.backends_table import BACKENDS, Backend
from trident.operations.builtin import Max
from trident.states import ControlRecord, Counts, OpaqueMap, Token
from trident.testing.servers.promised import Served


def asked(state: OpaqueMap, txid: int, words: int) -> Counts:
    """Run a batch of that many words; return what its task asks the store."""
    record = ControlRecord("log", Token(txid, 0), txid - 1)
    state.control.begin(record)
    before, calls = state.counts, state.control.calls
    state.beginCommit(record)
    if words:
        keys = [b"w%d" % number for number in range(words)]
        state.multiFold(keys, [txid] * words, Max())
    state.commit(record)
    after = state.counts
    assert state.control.calls == calls, "a task leaves the control record alone"
    assert state.control.announce(state.control.ready(record))
    names = Counts.__dataclass_fields__
    return Counts(**{name: getattr(after, name) - getattr(before, name) for name in names})


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_batch_is_one_read_and_one_write(
    backend: Backend, request: pytest.FixtureRequest
) -> None:
    server: Served = request.getfixturevalue(backend.fixture)
    state = OpaqueMap(backend.open(server.url))
    for txid in (1, 2):
        found = asked(state, txid, words=3_000)
        assert (found.gets, found.puts) == (1, 1)
        assert (found.keys_read, found.keys_written) == (3_000, 3_000)
    empty = asked(state, 3, words=0)
    assert (empty.gets, empty.puts) == (0, 0)
    state.close()
