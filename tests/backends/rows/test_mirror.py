"""A mirrored table equals its source, whenever the driver that writes it is killed."""

from __future__ import annotations

import random
import signal
from itertools import count
from pathlib import Path

import pytest

from tests import forks
from tests.backends.rows import killed_mirror
from tests.backends.rows.databases import Place
from tests.backends.rows.killed_mirror import RECORD
from trident.backends.rows.urls import database_from_url
from trident.batch.watchpoints import POINTS
from trident.chaos.tables import tables_reader, truth_of_changes
from trident.chaos.truth import Findings
from trident.states.errors import NoStateError

pytestmark = pytest.mark.slow

KILLS = 12


# MariaDB by hand, with the figures in docs/reliability.md.
@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
def test_a_mirror_equals_its_source_after_10_000_changes_though_drivers_are_killed(
    place: Place, tmp_path: Path
) -> None:
    points = [*random.Random(1).sample(POINTS, len(POINTS)), *POINTS][:KILLS]
    truth, seen = truth_of_changes(RECORD), [0]
    killed = killed_mirror.place(tmp_path, place.table)
    read = tables_reader(database_from_url(place.url), killed)
    for life, point in zip(count(1), [*points, ""]):
        ended = forks.run(killed_mirror, place.url, tmp_path, place.table, life, point)
        assert ended.code == (-signal.SIGKILL if point else 0), ended.printed
        try:
            reading = read()
        except NoStateError:  # killed before it has made them
            continue
        words = truth.words_in(reading)
        assert words is not None, truth.differences(reading)
        seen.append(words)
    assert seen == sorted(seen)
    assert truth.differences(read()) == Findings()
