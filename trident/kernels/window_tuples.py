"""The tuples of a block on their way into windows, folded by column where that is possible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from trident.kernels import column_forms
from trident.kernels.kernel import made_tuples
from trident.kernels.keys import group_keys, key_fields
from trident.kernels.task import StepName, Task
from trident.operations.emitted import Row
from trident.operations.interfaces import CombinerAggregator
from trident.operations.origins import ORIGIN
from trident.states.keys import encode_key
from trident.tuples.block import Block
from trident.windows.window_contents import named
from trident.windows.window_updater import WindowTuples, WindowUpdater, folded


def window_tuples(updater: WindowUpdater, block: Block, step: StepName, task: Task) -> WindowTuples:
    """The tuples of a block, as an updater of windows takes them."""
    aggregator, names = updater.aggregator, updater.inputs.names
    group, field = updater.group.names, updater.time_field
    keys = group_keys(block, group) if group else ()

    def fold(labels: Sequence[Hashable]) -> Mapping[Any, Any]:
        if not isinstance(aggregator, CombinerAggregator):
            return folded(aggregator, labels, block.tuples(names))
        totals = column_forms.no_totals(aggregator)
        if column_forms.take_in(aggregator, totals, labels, block, names):
            return totals
        pending = iter(made_tuples(aggregator, updater.inputs, block))
        with task.at(step, names, block, pending):
            return folded(aggregator, labels, pending)

    times = block.values(field) if field else ()
    told = bool(updater.streams) and ORIGIN in block.names  # not in what 0.1 has staged
    origins = block.values(ORIGIN) if told else ()
    return WindowTuples(block.length, keys, _name, times, origins, fold)


def _name(key: Hashable) -> Row:
    return named(key if type(key) is bytes else encode_key(key_fields(key)))
