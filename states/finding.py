"""What is found when somebody looks at a store, or at a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    `what` never holds a password. `level` is ``"ok"``; ``"warning"`` for what may lose data, or
    cost time; ``"problem"`` for what doesn't work, or makes a state count wrongly.
    """

    level: Level
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.level:8} {self.what}." + (f" {self.advice}" if self.advice else "")
