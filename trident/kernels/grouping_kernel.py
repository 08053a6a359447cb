"""The kernel of ``partition(grouping)``: says into which partitions each tuple goes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from trident.errors import EmittedValueError
from trident.kernels.kernel import TupleKernel, made_tuples
from trident.kernels.task import Task
from trident.operations.interfaces import CustomStreamGrouping, operation_name
from trident.tuples.block import Block

PARTITION = "__trident_partition"
"""The field that says where a tuple goes, until it is there."""


@dataclass(frozen=True)
class GroupingKernel(TupleKernel):
    """Repeats each tuple for each partition that was chosen, with that partition in a field."""

    operation: CustomStreamGrouping
    count: int = 1

    def apply(self, block: Block, task: Task) -> Block:
        targets = range(self.count)
        choose = self.operation.chooseTasks
        chosen = []
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, self.inputs.names, block, pending):
            for row in pending:
                chosen.append(self._check_choice(choose(targets, row)))
        made = {PARTITION: list(chain.from_iterable(chosen))}
        return block.repeated(list(map(len, chosen)), self.carried).added(made)

    def _check_choice(self, chosen: object) -> list[int]:
        known = range(self.count)
        if isinstance(chosen, list | tuple) and all(type(n) is int and n in known for n in chosen):
            return list(chosen)
        problem = (
            f"chose {chosen!r:.60}, where chooseTasks returns a list of partitions "
            f"from 0 to {self.count - 1}"
        )
        raise EmittedValueError(operation_name(self.operation), problem)
