"""Who counts each case."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.sizes.cases import OTHERS, OURS, Case, Timed
from benchmarks.sizes.others import aggregation, by_hand, bytewax, bytewax_counted
from benchmarks.sizes.ours import frame, spout
from benchmarks.sizes.setting import Setting

_COUNTING = (spout, spout, spout, frame, aggregation, by_hand, bytewax, bytewax_counted)
CONTENDERS: Mapping[str, Callable[[Setting, Case], Timed]] = dict(
    zip((*OURS, *OTHERS), _COUNTING, strict=True)
)
"""What measures a case, by its contender."""
