"""The README's first example: count words in batches, then ask for the sum of four of them."""

import trident
from trident import Count, FixedBatchSpout, MapGet, MemoryMapState, Split, Sum

topology = trident.TridentTopology()
lines = FixedBatchSpout("line string", 2, ("the cat sat",), ("the man walked",), ("the dog ran",))
counts = (topology.newStream("lines", lines)
    .each("line", Split(), "word")
    .groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count"))
(topology.newDRPCStream("words")
    .each("args", Split(), "word")
    .groupBy("word")
    .stateQuery(counts, "word", MapGet(), "count").aggregate("count", Sum(), "sum"))
with topology.start() as run:                    # on Spark: trident.spark.local_session()
    run.processAllAvailable()
    print(run.drpc.execute("words", "cat dog the man"))
