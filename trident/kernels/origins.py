"""The origin of tuples as a column of their block."""

from __future__ import annotations

from collections.abc import Collection

from trident.operations.origins import ORIGIN
from trident.tuples.block import Block


def with_origin(block: Block, needed: Collection[str], origin: str) -> Block:
    """The block with the origin of all its tuples, where that is needed and not there."""
    if ORIGIN not in needed or ORIGIN in block.names or not block.length:
        return block
    return block.added({ORIGIN: [origin] * block.length})
