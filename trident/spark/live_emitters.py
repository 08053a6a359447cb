"""The emitters of an executor's Python process, which live from batch to batch."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trident.sources.emission import Emission, Emitting

MOST = 16
"""How many emitters a process keeps; each may hold a connection."""

_logger = logging.getLogger("trident")
_live: dict[tuple[str, str], Emitting] = {}
"""By run and stream, the one that was used last at the end. A process runs one task at a time."""


def live_emitter(emission: Emission, make: Callable[[], Emitting]) -> Emitting:
    """The emitter of a stream here, made if need be; those of earlier runs, or too many, are
    closed."""
    key = (emission.run, emission.stream)
    for run, stream in list(_live):
        if stream == emission.stream and run != emission.run:
            _close((run, stream))
    _live[key] = _live.pop(key) if key in _live else make()
    while len(_live) > MOST:
        _close(next(iter(_live)))
    return _live[key]


def _close(key: tuple[str, str]) -> None:
    try:
        _live.pop(key).close()
    except Exception:
        _logger.warning("an emitter of stream %s could not be closed", key[1], exc_info=True)
