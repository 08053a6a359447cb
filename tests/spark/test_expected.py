"""Which engine a batch is expected to be faster on, learned from what batches took."""

from __future__ import annotations

import pytest

from trident.spark.mixed_engine import Expected

FLOOD = 10_000_000


@pytest.fixture
def expected() -> Expected:
    """Of a run whose first batches, which are slow, are over."""
    warm = Expected(cores=2)
    warm.took_on_spark(100, 5.0)
    warm.took_locally(100, 5.0)
    return warm


def test_small_batches_run_here_and_a_flood_on_spark(expected: Expected) -> None:
    assert expected.local_is_faster(100)
    assert not expected.local_is_faster(FLOOD)


def test_the_first_batch_on_spark_tells_nothing() -> None:
    expected = Expected(cores=2)
    expected.took_on_spark(300_000, 5.0)
    assert not expected.local_is_faster(FLOOD)


def test_the_first_batch_here_tells_nothing() -> None:
    expected = Expected(cores=2)
    expected.took_locally(10_000, 5.0)
    assert expected.local_is_faster(100_000)


def test_a_flood_that_is_faster_here_comes_back_after_few_batches_on_spark() -> None:
    expected = Expected(cores=2)
    expected.took_locally(10_000, 0.3)
    on_spark = 0
    for _ in range(20):
        if expected.local_is_faster(100_000):
            expected.took_locally(100_000, 0.35)
        else:
            expected.took_on_spark(100_000, 0.9)
            on_spark += 1
    assert on_spark <= 3


def test_one_slow_batch_on_spark_does_not_keep_a_flood_here(expected: Expected) -> None:
    for _ in range(5):
        expected.took_on_spark(300_000, 60.0)
    for _ in range(100):
        if not expected.local_is_faster(FLOOD):
            return
        expected.took_locally(FLOOD, 10.0)
    pytest.fail("Spark is never tried again")


def test_one_slow_batch_here_does_not_send_all_small_ones_to_spark(expected: Expected) -> None:
    expected.took_locally(100, 60.0)
    assert not expected.local_is_faster(100)
    expected.took_on_spark(100, 0.15)
    assert expected.local_is_faster(100)


def test_tuples_that_take_long_here_stay_on_spark(expected: Expected) -> None:
    for _ in range(20):
        expected.took_locally(100_000, 100_000 * 200e-6)
        for _ in range(20):
            assert not expected.local_is_faster(100_000)
            expected.took_on_spark(100_000, 0.15 + 100_000 * 100e-6)


def test_tuples_that_take_no_longer_here_are_seldom_tried_on_spark(expected: Expected) -> None:
    tried = 0
    for _ in range(200):
        if expected.local_is_faster(1_000_000):
            expected.took_locally(1_000_000, 0.3)
        else:
            expected.took_on_spark(1_000_000, 1.15)
            tried += 1
    assert tried <= 12
