"""A table to look things up in, put into a state by one call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.errors import UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import STAND_ALONE
from trident.states.state import StateFactory
from trident.states.tracebacks import Briefly


def fill(state: str | StateURL | StateFactory, entries: Mapping[Any, Any]) -> None:
    """Put entries into a state that no topology updates: a table that steps and queries look up.

    Parameters
    ----------
    state : str, StateURL or StateFactory
        The same as ``newStaticState`` is given, with the same ``prefix=``; the default is
        ``"state"`` for both.
    entries : mapping
        The value of each key. A key is one field, or a tuple of several, of the types that it is
        looked up with. None removes a key. Keys that are not named keep their values.

    Raises
    ------
    UsageError
        When a topology updates the state; for a state that is no map over a store.
    StaleBatchError, StateError
        When another call fills the state at the same time: nothing of this one counts then.
    StateUnavailableError
        The same, or when the store is away.

    Notes
    -----
    The entries are one batch. Readers of an opaque state, which is the default, find all of them
    or none. If the process was killed, call it again: the part that was written does not count. The
    entries pass through this process's memory. A table that is larger, or that changes as a stream
    does, is better kept by a topology of its own.

    Examples
    --------
    >>> import tempfile, trident
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     campaigns = f"sqlite:{folder}/ads.db?prefix=campaigns"
    ...     trident.fill(campaigns, {"ad1": "summer", "ad2": "winter"})
    ...     trident.fill(campaigns, {"ad2": None, "ad3": "autumn"})
    ...     trident.backends.state_from_url(campaigns).makeState().multiGet([["ad1"], ["ad2"]])
    ['summer', None]
    """
    with Briefly():
        factory = state if isinstance(state, StateFactory) else state_from_url(state)
        if not isinstance(factory, MapStateFactory):
            raise UsageError("fill: only a map over a store can be filled, found", factory.label)
        with closing(factory.makeState()) as table:
            record = table.control.read()
            if record is not None and record.log_id != STAND_ALONE:
                advice = "Give the table a prefix= of its own."
                raise UsageError("fill: a topology updates", table.control.place, (), advice)
            # Never the batch of a call that was cut short, so that what it wrote does not count.
            txid = 1 if record is None else record.token.txid + 1
            table.beginCommit(txid)
            keys = [key if isinstance(key, tuple) else (key,) for key in entries]
            table.multiPut(keys, entries.values())
            table.commit(txid)
