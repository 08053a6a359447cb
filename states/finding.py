"""Findings about a store or a machine, for `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One finding; `what` never holds a password.

    `level` is ``"ok"``, or ``"warning"`` if data or time may be lost, or ``"problem"`` if something
    doesn't work or makes a state count wrongly.
    """

    level: Level
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.level:8} {self.what}." + (f" {self.advice}" if self.advice else "")
