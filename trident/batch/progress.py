"""The progress of a run: its finished batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

Html = Callable[[Mapping[str, Any]], str]
"""Makes HTML of the result of `BatchProgress.to_dict`."""


def _text(progress: Mapping[str, Any]) -> str:
    return f"<pre>{escape(json.dumps(progress, ensure_ascii=False, indent=1))}</pre>"


_html: Html = _text


def show_progress_by(html: Html) -> None:
    """Have notebooks show the progress of a batch by `html`."""
    global _html
    _html = html


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One finished batch.

    Parameters
    ----------
    group : str
        The batch group.
    txid : int
        The batch.
    attempts : int
        How many attempts this process made; 0 for a replay, which is skipped.
    tuples : int
        The tuples that came from the sources.
    keys_read, keys_written, cache_hits : int
        What the states have read and written, and found in their caches.
    late : int
        Tuples that came too late for all windows of a state.
    seconds : mapping of str to float
        How long each step of the committed attempt took.
    engine : str
        Which engine ran it: ``"local"`` or ``"spark"``; empty if nothing had to be run.
    counters : mapping of str to int
        The counters of operations (``registerCounter``), including those of failed attempts.
    bad_tuples : mapping of str to int
        How many tuples each step has left out because it failed with them (``on_error=``),
        including those of failed attempts.
    dead_letter : str or None
        Why the batch was given up; None if it was not. A batch that was given up updates no state.
    at : float
        When it was finished, in seconds since 1970.

    Examples
    --------
    >>> progress = BatchProgress("words", 7, attempts=1, tuples=3)
    >>> progress.to_dict()["txid"]
    7
    """

    group: str
    txid: int
    attempts: int
    tuples: int = 0
    keys_read: int = 0
    keys_written: int = 0
    cache_hits: int = 0
    late: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    engine: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    bad_tuples: Mapping[str, int] = field(default_factory=dict)
    dead_letter: str | None = None
    at: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the progress as JSON values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: a table, if `trident.page` is loaded, as it is with a run."""
        return _html(self.to_dict())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The same, and its repr for programs that show only text."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    def json(self) -> str:
        """The progress as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)
