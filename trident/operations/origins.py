"""From which partition of which source each tuple comes, in a field that no user sees."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from trident.tuples.block import Block

ORIGIN = "__trident_origin"
"""The field. Tuples have it only on their way to windows by time with several origins."""

MADE = ""
"""The origin of tuples that an aggregate, a join or a state made: one partition for all."""


def origin_of(stream: str, partition: str | None = None) -> str:
    """What the field holds, which no slash of an id confuses; a stream may be one partition."""
    return stream if partition is None else f"{stream}/{partition}"


def expected_origins(
    streams: Sequence[str], active: Mapping[str, Sequence[str]], known: Sequence[str]
) -> Iterator[str]:
    """The origins that a watermark of these streams waits for: active ones, else all known so
    far."""
    for stream in streams:
        if stream in active:
            yield from active[stream]
        else:
            yield from [each for each in known if each.startswith(f"{stream}/")] or [stream]


def with_origin(block: Block, needed: Collection[str], origin: str) -> Block:
    """The block with the origin of all its tuples, where that is needed and missing."""
    if ORIGIN not in needed or ORIGIN in block.names or not block.length:
        return block
    return block.added({ORIGIN: [origin] * block.length})
