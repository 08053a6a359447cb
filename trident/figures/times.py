"""Times as figures show them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at: float) -> str:
    """Return seconds since 1970 as ISO 8601, in UTC.

    Examples
    --------
    >>> iso(0.25)
    '1970-01-01T00:00:00.250+00:00'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
