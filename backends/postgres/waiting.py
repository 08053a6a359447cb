"""Waits for the next committed batch of a state, which its announcement notifies of."""

from __future__ import annotations

from time import monotonic

from trident.backends.postgres.backing_map import PostgresMap
from trident.states.errors import StateError
from trident.states.maps.stored_map import StoredMap

_LOOK_SECONDS = 1.0
"""How often is looked without a notification, which a pooler may keep back."""


def wait_committed(state: StoredMap, after: int, timeout: float = 60.0) -> int:
    """Return the txid of the last committed batch, as soon as it is above `after`.

    Parameters
    ----------
    state : StoredMap
        A state in PostgreSQL, of any process, as ``makeState()`` of its factory returns it.
    after : int
        The txid that is known already; 0 waits for the first batch.
    timeout : float
        Seconds to wait.

    Raises
    ------
    TimeoutError
        When no such batch was committed in time.
    NoStateError
        When there is no state.
    StateUnavailableError
        When the server can't be reached.
    """
    backing = state.backing
    if not isinstance(backing, PostgresMap):
        raise StateError(f"wait_committed() takes a state in PostgreSQL, not {state.control.place}")
    deadline = monotonic() + timeout
    with backing.listening() as connection:
        while True:
            found = state.control.expect()
            if found is not None and found.committed > after:
                return found.committed
            left = deadline - monotonic()
            if left <= 0:
                break
            for _ in connection.notifies(timeout=min(left, _LOOK_SECONDS), stop_after=1):
                pass
    raise TimeoutError(f"no batch after {after} was committed within {timeout:g} s")
