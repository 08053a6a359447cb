"""A driver that mirrors 10,000 changes, and is killed at a point; run as ``python -m``."""

from __future__ import annotations

import sys
from pathlib import Path

from trident.backends.rows.urls import database_from_url
from trident.chaos.contender import EpisodePlace, OwnSpout, run_here
from trident.chaos.process import Fate, Life
from trident.chaos.tables import Changes, TablesContender

RECORD = Changes("mirror", 10_000, different=700)
_MOST = 1500
"""Changes in a batch, at most."""


def place(folder: str | Path, name: str) -> EpisodePlace:
    return EpisodePlace(Path(folder), name, "mirror")


def main(url: str, folder: str, name: str, life: str, point: str) -> None:
    source = OwnSpout(RECORD, _MOST, "opaque")
    driver = TablesContender("mirror", source, run_here, database_from_url(url))
    fate = Fate(point, passes=int(life) % 2)
    living = Life(int(life), fate, Path(folder, "mark"))
    with living.watched():
        driver.drive(place(folder, name), living)


if __name__ == "__main__":
    main(*sys.argv[1:])
