"""What a state asks of its store, counted for a run's progress and for tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counts:
    """How often a state has called its store, and with how many keys, since it was made.

    Parameters
    ----------
    gets, puts : int
        Calls that read and that wrote.
    keys_read, keys_written : int
        Keys in them.
    """

    gets: int = 0
    puts: int = 0
    keys_read: int = 0
    keys_written: int = 0
