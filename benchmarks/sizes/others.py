"""What one would use instead: Spark's own aggregation, a foreachBatch by hand, bytewax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from contextlib import closing as closed
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import Counts, CountsInRedis, Totals, TotalsInRedis
from benchmarks.sizes.cases import Case, Timed
from benchmarks.sizes.setting import UNTIMED, Place, Setting
from benchmarks.sizes.spark_batches import SPLIT, durations, lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = "counts"


def aggregation(setting: Setting, case: Case) -> Timed:
    """Keep the counts in Spark's state store, and put the changed ones into the store."""

    def upserts(place: Place, closing: ExitStack) -> Callable[[DataFrame, int], None]:
        if case.store == "Redis":
            in_redis = TotalsInRedis(setting.redis.port, place.prefix)
            return lambda counted, batch: _in_tasks(counted, in_redis)
        totals = closing.enter_context(closed(Totals(place.database)))
        return lambda counted, batch: totals.put(*_columns(counted))

    counted = _by_word(lines(setting.spark, setting.files(case)))
    return _foreach_batch(setting, case, counted, upserts)


def by_hand(setting: Setting, case: Case) -> Timed:
    """Count each batch, and add to what the store has."""

    def upserts(place: Place, closing: ExitStack) -> Callable[[DataFrame, int], None]:
        if case.store == "Redis":
            in_redis = CountsInRedis(setting.redis.port, place.prefix)
            return lambda some, batch: _in_tasks(_by_word(some), in_redis)
        counts = closing.enter_context(closed(Counts(place.database)))
        return lambda some, batch: counts.add(batch, *_columns(_by_word(some)))

    return _foreach_batch(setting, case, lines(setting.spark, setting.files(case)), upserts)


def _foreach_batch(
    setting: Setting,
    case: Case,
    source: DataFrame,
    upserts: Callable[[Place, ExitStack], Callable[[DataFrame, int], None]],
) -> Timed:
    with setting.place() as place:
        with ExitStack() as closing:
            query = (
                source.writeStream.outputMode("update")
                .foreachBatch(upserts(place, closing))
                .option("checkpointLocation", f"file://{place.checkpoint}")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        batches = durations(query)
        setting.check(case, place, UNTIMED + len(batches), "n", _TABLE)
    return Timed(case, batches, sum(batches), on_spark=1.0)


def _by_word(source: DataFrame) -> DataFrame:
    return source.selectExpr(f"{SPLIT} AS word").groupBy("word").count()


def _columns(counted: DataFrame) -> tuple[Sequence[str], Sequence[int]]:
    table = counted.toArrow()
    return table["word"].to_pylist(), table["count"].to_pylist()


def _in_tasks(counted: DataFrame, update: Any) -> None:
    counted.mapInArrow(update, "done int").write.format("noop").mode("overwrite").save()


def bytewax(setting: Setting, case: Case) -> Timed:
    """Count with bytewax word by word, and put what a batch changed into the store."""
    return _dataflow(setting, case, lambda lines: [(word, 1) for word in _words(lines)])


def bytewax_counted(setting: Setting, case: Case) -> Timed:
    """Count likewise, but each batch in one go before its words are told apart."""
    return _dataflow(setting, case, lambda lines: Counter(_words(lines)).items())


def _words(lines: Iterable[str]) -> list[str]:
    return " ".join(lines).split(" ")


def _dataflow(
    setting: Setting, case: Case, split: Callable[[list[str]], Iterable[tuple[str, int]]]
) -> Timed:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.inputs import DynamicSource, StatelessSourcePartition
    from bytewax.outputs import DynamicSink, StatelessSinkPartition
    from bytewax.testing import run_main

    text, effort = setting.text(case.keys), setting.effort
    emitted: list[float] = []
    written: dict[int, float] = {}

    class Lines(DynamicSource[str], StatelessSourcePartition[str]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Lines:
            return self

        def next_batch(self) -> Sequence[str]:
            number = len(emitted)
            if number >= UNTIMED + 3 and perf_counter() - emitted[UNTIMED] > effort.seconds:
                raise StopIteration
            emitted.append(perf_counter())
            return list(text.batch(number, case.words))

    class Total(op.StatefulBatchLogic[int, int, int]):
        def __init__(self, total: int | None) -> None:
            self._total = total or 0

        def on_batch(self, values: list[int]) -> tuple[Iterable[int], bool]:
            self._total += sum(values)
            return (self._total,), False

        def snapshot(self) -> int:
            return self._total

    class Upsert(DynamicSink[tuple[str, int]], StatelessSinkPartition[tuple[str, int]]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Upsert:
            return self

        def write_batch(self, items: list[tuple[str, int]]) -> None:
            # A large batch comes in several parts, each of which is a transaction in SQLite.
            put([word for word, _ in items], [total for _, total in items])
            written[len(emitted)] = perf_counter()

    with setting.place() as place:
        with ExitStack() as closing:
            put = _totals(setting, case, place, closing)
            flow = Dataflow("words")
            counts = op.flat_map_batch("split", op.input("lines", flow, Lines()), split)
            op.output("upsert", op.stateful_batch("count", counts, Total), Upsert())
            run_main(flow)
        setting.check(case, place, len(emitted), "n", _TABLE)
    times = [end - start for start, end in zip(emitted, written.values(), strict=True)]
    return Timed(case, times[UNTIMED:], written[len(emitted)] - written[UNTIMED])


def _totals(
    setting: Setting, case: Case, place: Place, closing: ExitStack
) -> Callable[[Sequence[str], Sequence[int]], None]:
    """Return what puts totals into the store of a case."""
    if case.store == "SQLite":
        return closing.enter_context(closed(Totals(place.database))).put
    if case.store == "Redis":
        redis = TotalsInRedis(setting.redis.port, place.prefix)
        return partial(redis.write, closing.enter_context(redis.connected()))
    return lambda words, totals: None
