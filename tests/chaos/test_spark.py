"""Drivers on Spark are programs with a JVM below them."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from trident.backends.urls import state_from_url
from trident.chaos.contender import EpisodePlace, MapContender, truth_of
from trident.chaos.on_spark import (
    SparkClients,
    SparkPrograms,
    WithJVM,
    be_program,
    below,
)
from trident.chaos.process import UNHARMED, DriverEnd, Fate, Life
from trident.chaos.record import Record
from trident.chaos.truth import Findings
from trident.chaos.word_count import topology
from trident.testing.servers.process import wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


DRIVERS = [Fate("after write", passes=1), UNHARMED]


def stands_still(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")


def stop_for_a_moment(driver: WithJVM) -> None:
    """Stop a driver with its JVM, as soon as that is there, and let both go on."""
    wait_until(lambda: "JVM" in [is_a for _, is_a in below(driver.pid)], 120)
    [jvm] = [pid for pid, is_a in below(driver.pid) if is_a == "JVM"]
    driver.stop()
    wait_until(lambda: stands_still(driver.pid) and stands_still(jvm), 10)
    driver.resume()


@pytest.mark.parametrize("way", [SparkPrograms(), SparkClients()], ids=["classic", "connect"])
def test_every_word_counts_once_on_spark_though_drivers_or_their_server_are_killed_or_stopped(
    way: SparkPrograms, tmp_path: Path
) -> None:
    record = Record("1", 20)
    place = EpisodePlace(tmp_path, "chaos-1", "1")
    factory = state_from_url(f"sqlite:{tmp_path}/state.db")
    with way.served(tmp_path) as troubles, way.source(way.source_name, record, tmp_path) as source:
        contender = MapContender("words", source, way.run, factory, topology)
        contender.before(place)
        for number, fate in enumerate(DRIVERS, 1):
            life = Life(number, fate, tmp_path / f"mark-{number}")
            work = partial(be_program, contender, place, life)
            with closing(WithJVM(work, tmp_path / "log", life)) as driver:
                if fate is UNHARMED and not way.server:
                    stop_for_a_moment(driver)
                assert driver.wait(250)
            ended = DriverEnd.KILLED if fate.point else DriverEnd.FINISHED
            assert driver.outcome is ended, driver.problem
            if number == 1:
                assert ["Connect server restarted" for _ in troubles] == [
                    hurt() for hurt in troubles
                ]
    truth = truth_of(topology, record)
    with contender.reading(place, truth.keys) as read:
        assert truth.differences(read()) == Findings()
