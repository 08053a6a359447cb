"""Rows of tables under the tester: in a file of its own, through all that it plays."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trident import FeederBatchSpout, Rows, TridentTopology
from trident.testing import Tester


def topology() -> TridentTopology:
    """Orders into a table of a database that is nowhere, and their numbers into another."""
    made = TridentTopology()
    orders = made.newStream("orders", FeederBatchSpout("id long, what string"))
    shop = "postgresql://nobody@127.0.0.1:1/shop"
    orders.partitionPersist(Rows(shop, "shop.orders", "id"), name="orders")
    orders.partitionPersist(Rows(shop, "seen"), "id", name="seen")
    return made


@pytest.fixture
def tester() -> Iterator[Tester]:
    with Tester(topology()) as tester:
        yield tester


@pytest.mark.parametrize("after", ["begin", "write", "ready", "commit", "announce"])
def test_a_batch_whose_driver_crashes_is_in_all_tables_once(tester: Tester, after: str) -> None:
    tester.feed("orders", (2, "b"), (1, "a"))
    tester.crash(after=after)
    tester.feed("orders", (2, "new"), (3, "c"))
    tester.assert_state("orders", [(1, "a"), (2, "new"), (3, "c")])
    tester.assert_state("seen", [(2,), (1,), (2,), (3,)])


def test_a_replay_with_other_tuples_replaces_what_was_written(tester: Tester) -> None:
    tester.replay((1, "other"))
    tester.feed("orders", (1, "a"), (2, "b"))
    tester.assert_state("orders", [(1, "other")])
    assert tester.progress[-1].keys_written == 2


def test_a_tester_leaves_no_file(tester: Tester) -> None:
    tester.feed("orders", (1, "a"))
    [*made] = Path(tempfile.gettempdir()).glob("trident_*.db*")
    assert made
    tester.close()
    assert not any(path.exists() for path in made)
