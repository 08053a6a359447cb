"""How long each step of an attempt took."""

from __future__ import annotations

from time import perf_counter


class Steps:
    """A stopwatch with names.

    Examples
    --------
    >>> steps = Steps()
    >>> steps.done("emit")
    >>> list(steps.seconds)
    ['emit']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = perf_counter()

    def done(self, step: str) -> None:
        """Note that `step` has taken the time since the step before."""
        now = perf_counter()
        self.seconds[step] = now - self._since
        self._since = now
