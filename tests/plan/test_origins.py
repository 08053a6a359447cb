"""Which streams a watermark waits for, and which steps hand the origin of their tuples on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.topologies import Column, Frame
from tests.spouts.test_classic import Opaque
from trident import Count, FixedBatchSpout, MemoryMapState, TextFileSpout, TridentTopology
from trident.api.stream import Stream
from trident.job.passes import needed_fields
from trident.operations.origins import ORIGIN
from trident.plan.origins import watched_streams


def plain(topology: TridentTopology, name: str = "plain") -> Stream:
    return topology.newStream(name, FixedBatchSpout("t long", 3))


def files(topology: TridentTopology) -> Stream:
    return topology.newStream("files", TextFileSpout("none.txt")).map(int, "t long")


def counted(stream: Stream) -> Stream:
    return stream.aggregate(Count(), "t")


def joined(topology: TridentTopology) -> Stream:
    return topology.join([files(topology), plain(topology, "o")], ["t", "t"], "t")


KAFKA = [Column("topic", "string"), Column("partition", "int"), Column("t", "bigint")]


@pytest.mark.parametrize(
    ("declare", "streams"),
    [
        (plain, ()),
        (files, ("files",)),
        (lambda t: t.newStream("classic", Opaque()), ("classic",)),
        (lambda t: t.merge(plain(t), plain(t, "other").filter("t", bool)), ("other", "plain")),
        (lambda t: t.merge(s := plain(t), s.filter("t", bool)), ()),
        (lambda t: counted(files(t)), ()),
        (lambda t: t.merge(plain(t), counted(files(t))), ("", "plain")),
        (lambda t: t.merge(counted(plain(t)), counted(files(t))), ()),
        (lambda t: t.merge(plain(t), joined(t)), ("", "plain")),
        (lambda t: t.newStream("frame", Frame(*KAFKA)), ("frame",)),
        (lambda t: t.newStream("frame", Frame(*KAFKA[1:])), ()),
        (lambda t: t.newStream("frame", Frame(*KAFKA), partitionFields=[]), ()),
        (lambda t: t.newStream("frame", Frame(*KAFKA[2:]), partitionFields="t"), ("frame",)),
    ],
)
def test_a_watermark_waits_for_streams_of_several_partitions_together(
    declare: Callable[[TridentTopology], Stream], streams: tuple[str, ...]
) -> None:
    assert watched_streams(declare(TridentTopology())._node) == streams


def test_no_tuple_has_an_origin_where_no_window_asks_for_it() -> None:
    topology = TridentTopology()
    both = topology.merge(plain(topology), files(topology))
    both.tumblingWindow(3, MemoryMapState.Factory(), Count(), "n")
    assert not any(ORIGIN in fields for fields in needed_fields(topology.plan().nodes).values())
