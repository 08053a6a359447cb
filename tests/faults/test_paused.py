"""A server that is paused in the middle of a write, for longer than anyone waits."""

from __future__ import annotations

import pytest

from tests.faults.conftest import Store
from tests.faults.word_count import assert_told, at, when_waiting
from trident.batch.errors import OutageError
from trident.testing.servers.process import wait_until


def test_what_a_paused_server_executes_when_it_is_resumed_does_not_count_twice(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    words = store.words

    def resume() -> None:
        store.server.resume()
        wait_until(lambda: words.written(2) == 1)

    with (
        at(
            "before write",
            2,
            0,
            lambda: store.proxy.when_asked(store.kind.write, store.server.pause),
        ),
        when_waiting(resume),
    ):
        assert words.run() == {2: 2}
    assert_told(caplog, store.place, store.kind.silent)
    assert words.counted_all()


def test_a_server_that_is_resumed_when_patience_is_over_goes_on_with_the_next_start(
    store: Store,
) -> None:
    words = store.words
    with (
        at("before write", 2, 0, store.server.pause),
        pytest.raises(OutageError, match="batch 2 of words waited .*start again") as stopped,
    ):
        words.run(patience=0.1, on_failure="dead-letter")
    store.server.resume()
    assert store.place in str(stopped.value)
    assert words.counted() == words.size
    words.run()
    assert words.counted_all()
