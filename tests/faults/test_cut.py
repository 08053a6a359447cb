"""Connections that are cut in the middle of a reply."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import pytest

from tests.faults.conftest import Store
from tests.faults.word_count import assert_told, at


def test_a_connection_cut_in_the_middle_of_a_reply_to_a_read_fails_the_attempt(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as cuts:
        for txid, after in enumerate((1, 30, 500), start=2):
            cuts.enter_context(at("before write", txid, 0, partial(store.proxy.cut, after)))
        assert store.words.run() == {2: 2, 3: 2, 4: 2}
    assert_told(caplog, store.place, store.kind.cut)
    assert store.words.counted_all()


def test_a_connection_cut_in_the_middle_of_a_reply_to_a_write_fails_the_attempt(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as cuts:
        for txid, after in enumerate((0, 3, 10, 20), start=2):
            cut_reply = partial(store.proxy.cut, after)
            arm = partial(store.proxy.when_asked, store.kind.write, cut_reply)
            cuts.enter_context(at("before write", txid, 0, arm))
        assert store.words.run() == {2: 2, 3: 2, 4: 2, 5: 2}
    assert_told(caplog, store.place, store.kind.cut)
    assert store.words.counted_all()


def test_a_connection_cut_while_a_batch_begins_or_is_confirmed_fails_the_attempt(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        at("before begin", 2, 0, partial(store.proxy.cut, 5)),
        at("before ready", 3, 0, partial(store.proxy.cut, 5)),
    ):
        assert store.words.run() == {2: 2, 3: 2}
    assert_told(caplog, store.place, store.kind.cut)
    assert store.words.counted_all()


def test_a_connection_cut_while_a_commit_is_announced_has_it_announced_again(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with at("before announce", 2, 0, partial(store.proxy.cut, 1)):
        assert store.words.run() == {}
    assert_told(caplog, store.place, store.kind.cut)
    assert "the announcement of batch 2 of words waits" in caplog.text
    assert store.words.counted_all()
