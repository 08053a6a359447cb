"""The check of a step's values as a step of its own, right after it."""

from __future__ import annotations

from trident.conforming import Misfit, conforming
from trident.local.batch import Batch, Rows, blame
from trident.local.steps import Step
from trident.plan.nodes import Node


def conforming_step(node: Node) -> Step | None:
    """What checks the fields that a step makes; None where no type of them is checked."""
    check = conforming(node)
    if check is None:
        return None

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        try:
            return check.rows(node.fields, rows)
        except Misfit as found:
            blame(found.error, node, batch, partition, found.row, check.names)

    return run
