"""For tests of topologies: a tester that goes step by step, and what can go wrong on the way."""

from trident.batch.watchpoints import POINTS, STAGING_POINTS
from trident.spouts.fixed import Crash, Fail, Replay, SimulatedCrash
from trident.testing.points import Hold, fail_at, hold_at, kill_at
from trident.testing.tester import Tester

__all__ = [
    "POINTS",
    "STAGING_POINTS",
    "Crash",
    "Fail",
    "Hold",
    "Replay",
    "SimulatedCrash",
    "Tester",
    "fail_at",
    "hold_at",
    "kill_at",
]
