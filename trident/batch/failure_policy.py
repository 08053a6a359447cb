"""What happens when a batch fails: how often and when it is tried again, and what then."""

from __future__ import annotations

from dataclasses import dataclass

from trident.batch.errors import FailurePolicyError
from trident.batch.start_options import OnFailure
from trident.batch.states import GroupStates

_LONGEST_PAUSE = 10.0


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """How a run deals with failed batches; `StartOptions` has checked the values.

    Where `retries` are used up, ``"stop"`` keeps the batch for the next start; ``"dead-letter"``
    commits it without updating any state and goes on, for opaque maps only. `backoff` is doubled
    for each further retry, 10 s at most. A batch waits for `patience` for a store, or the log's
    disk, that is away: that is no failure of the batch, and the others have no part in it. More
    than the share `max_errors` of bad tuples stop the run; None allows any.

    Examples
    --------
    >>> [FailurePolicy().pause(failures) for failures in (1, 2, 3, 20)]
    [0.1, 0.2, 0.4, 10.0]
    """

    retries: int = 3
    on_failure: OnFailure = "stop"
    backoff: float = 0.1
    patience: float = 600.0
    max_errors: float | None = None

    def check(self, states: GroupStates) -> None:
        """Raise FailurePolicyError where `states` don't allow it."""
        if self.on_failure == "dead-letter" and states.inexact:
            raise FailurePolicyError(
                f"on_failure is 'dead-letter', but {', '.join(states.inexact)} is no opaque map",
                "What a given-up batch has written can be undone in opaque maps only: make it "
                "opaque, or use on_failure='stop'.",
            )

    def pause(self, failures: int) -> float:
        """Return how many seconds to wait after the last of `failures`."""
        doublings = min(failures - 1, 1000)  # more would overflow a float
        return min(_LONGEST_PAUSE, self.backoff * 2.0**doublings)


DEFAULT_POLICY = FailurePolicy()
