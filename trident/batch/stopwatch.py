"""How long each part of an attempt took."""

from __future__ import annotations

from time import perf_counter


class Stopwatch:
    """Measures the parts of an attempt, one after the other; starts when it is made."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = self._since = perf_counter()

    def done(self, part: str) -> None:
        """Note that `part` has taken the time since the part before it; it may have several."""
        now = perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now

    def go_on(self) -> None:
        """Go on now, after a wait that no part has taken."""
        self._since = perf_counter()

    @property
    def elapsed(self) -> float:
        """How long ago it was made, in seconds."""
        return perf_counter() - self._began
