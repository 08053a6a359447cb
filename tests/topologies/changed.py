"""Topologies before and after each change that docs/changing.md lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.spouts.decades import OpaqueShelf, Shelf
from tests.transactional.test_bolts import Committer
from trident import (
    CombinerAggregator,
    Count,
    Duration,
    FixedBatchSpout,
    MapGet,
    Max,
    ReducerAggregator,
    Rows,
    SlidingCountWindow,
    StateUpdater,
    Sum,
    TridentTopology,
    TumblingCountWindow,
    TumblingDurationWindow,
)
from trident.backends import StateSpec
from trident.transactional import MemoryTransactionalSpout, TransactionalTopologyBuilder

Declare = Callable[[Any, Path], TridentTopology]
"""Declares a topology, for a session or None and the folder of its store."""

FIELDS = "word string, n long, at long"
ROWS = (["a", 1, 10], ["b", 2, 20], ["c", 3, 30])


class Told(Max):
    """One with a parameter that the log is told of."""

    def __init__(self, parameter: int) -> None:
        self.identity = f"parameter={parameter}"


class Silent(Max):
    """One with a parameter that nobody is told of."""

    def __init__(self, parameter: int) -> None:
        self.parameter = parameter


class Largest(Count):
    """Another class."""


class Total(ReducerAggregator[int]):
    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + int(tuple[0])


class Pairs(CombinerAggregator[list[int]]):
    """A sum, and how many there were since it was no longer the sum alone."""

    arity = 1
    output_types = ("array<long>",)
    schema_version = 2

    def init(self, tuple: Any) -> list[int]:
        return [tuple[0], 1]

    def combine(self, a: list[int], b: list[int]) -> list[int]:
        return [a[0] + b[0], a[1] + b[1]]

    def zero(self) -> list[int]:
        return [0, 0]

    def upgrade(self, value: Any, version: int) -> list[int]:
        assert version == 1
        return [value, 0]


class Renamed(FixedBatchSpout):
    """Another class."""


class Noting(StateUpdater[Any]):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.multiPut([(t[0],) for t in tuples], [1 for _ in tuples])


class NotingTwice(Noting):
    """Another class."""


class Other(Committer):
    """Another class."""


def _elsewhere(kind: type[Any]) -> Any:
    """A class of the same name in another module."""
    return type(kind.__name__, (kind,), {"__module__": "elsewhere"})


def _giving(kind: str) -> Any:
    """A reducer that says of which type its values are."""
    return type("Total", (Total,), {"output_types": [kind]})()


def words(
    aggregator: Any = None,
    *,
    by: str | None = "word",
    inputs: str | None = None,
    name: str = "count",
    renamed_from: str | None = None,
    value: str = "value",
    store: str = "sqlite:{folder}/{name}.db",
    spout: Any = None,
    stream: str = "words",
    step: Callable[[Any], Any] = lambda given: given,
    window: Any = None,
    partitions: int = 1,
    **options: Any,
) -> Declare:
    """A state of the words of a stream."""
    aggregator = aggregator or Count()
    seen = [inputs or "n"] if getattr(aggregator, "arity", 1) else []

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        source = spout or FixedBatchSpout(FIELDS, 3, *ROWS)
        tuples = step(topology.newStream(stream, source)).parallelismHint(partitions)
        grouped = tuples.groupBy(by) if by else tuples
        place = StateSpec(store.format(folder=folder, name=name), renamed_from=renamed_from)
        if window is not None:
            grouped.window(window, place, *seen, aggregator, value, name=name)
        else:
            grouped.persistentAggregate(place, *seen, aggregator, value, name=name, **options)
        return topology

    return declare


def both(*names: str, more: tuple[str, ...] = (), rows: int = 3) -> Declare:
    """Several states of one stream, and streams with batches of their own."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        for stream in ("words", *more):
            spout = FixedBatchSpout(FIELDS, 1, *(ROWS * 2)[:rows])
            grouped = topology.newStream(stream, spout).groupBy("word")
            for name in names:
                own = f"{name}{'' if stream == 'words' else stream}"
                grouped.persistentAggregate(f"sqlite:{folder}/{own}.db", Count(), own)
        return topology

    return declare


def tabled(database: str = "shop", **options: Any) -> Declare:
    """Words in a table."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        rows = Rows(f"sqlite:{folder}/{database}.db", "words", "word", **options)
        topology.newStream("words", FixedBatchSpout(FIELDS, 3, *ROWS)).partitionPersist(rows)
        return topology

    return declare


def merged(*streams: str, kind: str = "opaque") -> Declare:
    """Several streams that share batches."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        made = [topology.newStream(each, FixedBatchSpout(FIELDS, 1, *ROWS)) for each in streams]
        stream = made[0] if len(made) == 1 else topology.merge(*made)
        url = f"sqlite:{folder}/c.db?kind={kind}"
        stream.groupBy("word").persistentAggregate(url, Count(), "count")
        return topology

    return declare


def shelved(*parts: str) -> Declare:
    """Numbers of a source in partitions."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        spout = OpaqueShelf(Shelf({part: [1, 2, 3] for part in parts}))
        grouped = topology.newStream("numbers", spout).groupBy("part")
        grouped.persistentAggregate(f"sqlite:{folder}/c.db", "number", Sum(), "count")
        return topology

    return declare


def noted(updater: StateUpdater[Any]) -> Declare:
    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        stream = topology.newStream("words", FixedBatchSpout(FIELDS, 3, *ROWS))
        stream.partitionPersist(f"sqlite:{folder}/noted.db", "word", updater, name="noted")
        return topology

    return declare


def asked(aggregator: Any = None) -> Declare:
    """Requests that update a state."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        requests = topology.newDRPCStream("add", answers=f"sqlite:{folder}/answers.db")
        counts = aggregator or Count()
        requests.groupBy("args").persistentAggregate(f"sqlite:{folder}/c.db", counts, "n")
        return topology

    return declare


def queried(session: Any, folder: Path) -> TridentTopology:
    topology = words()(session, folder)
    topology.newStream("unstored", FixedBatchSpout("v long", 3, [1])).peek(str)
    state = topology.newStaticState(f"sqlite:{folder}/other.db?prefix=other")
    topology.newDRPCStream("get").stateQuery(state, "args", MapGet(), "n")
    return topology


def committed(bolt: Any) -> Declare:
    def declare(session: Any, folder: Path) -> TridentTopology:
        spout = MemoryTransactionalSpout({0: [["a"]]}, "word string", 1)
        builder = TransactionalTopologyBuilder("words", "spout", spout)
        builder.setCommitterBolt("bolt", bolt).globalGrouping("spout")
        return builder.buildTopology()

    return declare


def framed(
    source: str = "texts", mode: str | None = None, name: str = "lines", until: str | None = None
) -> Declare:
    """A streaming DataFrame of files, perhaps with a history, or of Spark's rate source."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        if source == "rate":
            frame = session.readStream.format("rate").load().selectExpr("'a' AS value")
        else:
            (folder / source).mkdir(exist_ok=True)
            (folder / source / "1.txt").write_text("a\nb\n")
            frame = session.readStream.text(str(folder / source))
        if mode is not None:
            frame = frame.groupBy("value").count()
        options: dict[str, Any] = {"outputMode": mode}
        if until is not None:
            history = session.createDataFrame([("a",)], "value string")
            options |= {"history": history, "until": {"value": until}}
        topology.newStream(name, frame, **options).groupBy("value").persistentAggregate(
            f"sqlite:{folder}/c.db", Count(), "n"
        )
        return topology

    return declare


def rows_of_frame(rows: int) -> Declare:
    """A static stream beside a stream."""

    def declare(session: Any, folder: Path) -> TridentTopology:
        topology = words()(session, folder)
        static = topology.newStaticStream(session.range(rows))
        asked = topology.newDRPCStream("get", engine="spark").each("args", _number, "key long")
        topology.join([asked, static], ["key", "id"], "key, args")
        return topology

    return declare


def _number(text: str) -> list[int]:
    return [int(text)]


def _upper(stream: Any) -> Any:
    return stream.filter("n", lambda n: n > 0).map(lambda w, n, at: (w.upper(), n, at))


def tumbling(length: int) -> Any:
    return TumblingDurationWindow.of(Duration.of(length)).withTimestampField("at")


@dataclass(frozen=True)
class Change:
    """A topology before and after it was changed.

    Parameters
    ----------
    before, after : callable
        Declare it.
    options : mapping
        What the second start is given.
    between : callable, optional
        A topology that runs between them.
    spark : bool
        Whether the first start needs a session; all that follow get the same.
    older : bool
        Whether the log of the first start says no more than one of an older version.
    fails : str
        Where the first batch of the first start fails; nowhere by default.
    says : str
        What the error of a change says that is refused whatever is accepted: the remedy.
    """

    before: Declare
    after: Declare
    options: dict[str, Any] = field(default_factory=dict)
    between: Declare | None = None
    spark: bool = False
    older: bool = False
    fails: str = ""
    says: str = ""


EVEN = TumblingCountWindow.of(2)
ANOTHER_NAME = r"give the state another name \(name=…\), under which it begins anew"
OLD_PLACE = "was changed, give the old one"
OLD_SOURCE = "Restore it as it was; or start the other source with"
OLD_IDS = "Give the streams their old ids, or start with a new checkpoint"
ADOPT = r"start with a new checkpoint and adopt=Adopt.from_checkpoint\(<this one>\)"
KINDS = "sqlite:{folder}/{name}.db?kind=%s"
UNKNOWN = FixedBatchSpout("word, n long, at long", 3, *ROWS)

CHANGES = {
    "another aggregator, as `Sum` for `Count`": Change(words(), words(Sum())),
    "another updater of `partitionPersist`": Change(noted(Noting()), noted(NotingTwice())),
    "another `identity` of an aggregator": Change(words(Told(1)), words(Told(2))),
    "other parameters of an aggregator that has no `identity`": Change(
        words(Silent(1)), words(Silent(2))
    ),
    "the class has moved to another module": Change(words(), words(_elsewhere(Count)())),
    "another key field": Change(words(by="n"), words(by="at")),
    "one key field more, one less, or another order": Change(words(), words(by="word, n")),
    "another type of a key field": Change(
        words(by="key", step=lambda s: s.each("n", lambda n: [n], "key long")),
        words(by="key", step=lambda s: s.each("n", lambda n: [str(n)], "key string")),
    ),
    "a key field has got a type that was unknown": Change(
        words(by="key", step=lambda s: s.each("n", lambda n: [n], "key")),
        words(by="key", step=lambda s: s.each("n", lambda n: [n], "key long")),
    ),
    "a group where there was none": Change(words(by=None), words()),
    "another length, slide or gap of a window": Change(
        words(window=TumblingCountWindow.of(5)),
        words(window=TumblingCountWindow.of(7)),
        says=ANOTHER_NAME,
    ),
    "another field with a window's time": Change(
        words(window=tumbling(50)),
        words(window=tumbling(50).withTimestampField("n")),
        says=ANOTHER_NAME,
    ),
    "another lag or lateness of a window": Change(
        words(window=tumbling(50)), words(window=tumbling(50).withLag(Duration.of(5)))
    ),
    "another aggregator of a window, of the same sort": Change(
        words(Sum(), window=EVEN), words(Max(), window=EVEN)
    ),
    "a reducer or aggregator where a window had a combiner": Change(
        words(Sum(), window=SlidingCountWindow.of(4, 2)),
        words(Total(), window=SlidingCountWindow.of(4, 2)),
        says=ANOTHER_NAME,
    ),
    "opaque, transactional or plain values where they were others": Change(
        words(store=KINDS % "opaque"), words(store=KINDS % "transactional"), says=ANOTHER_NAME
    ),
    "a state is renamed": Change(words(name="count"), words(name="counts")),
    "a state is renamed, with `renamed_from=`": Change(
        words(name="count", store="sqlite:{folder}/c.db"),
        words(name="counts", store="sqlite:{folder}/c.db", renamed_from="count"),
    ),
    "a state is renamed, and has its old prefix": Change(
        words(name="count", store="sqlite:{folder}/c.db?prefix=c"),
        words(name="counts", store="sqlite:{folder}/c.db?prefix=c"),
        says=r"say so: StateSpec\(…, renamed_from='count'\)",
    ),
    "a state is left out": Change(both("one", "two"), both("one")),
    "a state is back after batches without it": Change(
        both("one", "two"), both("one", "two", rows=4), between=both("one", rows=4)
    ),
    "a state is added": Change(both("one"), both("one", "two")),
    "anything of an opaque map that has no committed batch yet": Change(
        words(), words(Sum(), by="n"), fails="before commit"
    ),
    "the name of the value field, with `name=`": Change(words(), words(value="other")),
    "another field that an aggregator or updater sees": Change(
        words(Sum()), words(Sum(), inputs="at")
    ),
    "another type of such a field": Change(
        words(Max(), inputs="m", step=lambda s: s.each("n", lambda n: [n], "m long")),
        words(Max(), inputs="m", step=lambda s: s.each("n", lambda n: [n / 2], "m double")),
    ),
    "another type of an aggregate": Change(words(_giving("int")), words(_giving("long"))),
    "any of these with a higher `schema_version`": Change(words(Sum()), words(Pairs())),
    "the same of a window": Change(words(Sum(), window=EVEN), words(Pairs(), window=EVEN)),
    "a lower `schema_version`": Change(
        words(Pairs()), words(Sum()), says="give a later schema_version, with an upgrade"
    ),
    "another serializer, or `key_factory=`": Change(
        words(store="sqlite:{folder}/{name}.db?serializer=pickle"), words()
    ),
    "the cache of a store": Change(words(), words(store="sqlite:{folder}/{name}.db?cache_size=7")),
    "another `expire_after=` or `time_field=`, or none where there was one": Change(
        words(expire_after=Duration.of(5), time_field="at"),
        words(),
        between=words(expire_after=Duration.of(50)),
    ),
    "another store, which is empty": Change(
        words(), words(store="sqlite:{folder}/new.db"), says=OLD_PLACE
    ),
    "another table, `key=` or `mode=` of [`Rows`](rows.md)": Change(tabled(), tabled(mode="add")),
    "`columns=`, `order_by=`, `delete_where=` or `on_bad_row=` of `Rows`": Change(
        tabled(), tabled(order_by="at", columns={"at": None})
    ),
    "another database of `Rows`": Change(tabled(), tabled("new"), says=OLD_PLACE),
    "another class of spout under a stream's id": Change(
        words(), words(spout=Renamed(FIELDS, 3, *ROWS))
    ),
    "other arguments of a spout: topics, files, rate": Change(
        words(), words(spout=FixedBatchSpout(FIELDS, 7, ["x", 1, 1]))
    ),
    "a field more, less, renamed, or of another type in a stream's schema": Change(
        words(), words(spout=FixedBatchSpout(f"{FIELDS}, m long", 3))
    ),
    "another id of a stream": Change(
        words(),
        words(stream="others"),
        says=OLD_IDS,
    ),
    "a stream more that shares batches with others": Change(merged("one"), merged("one", "two")),
    "the same while a batch of a transactional state is under way": Change(
        merged("one", kind="transactional"),
        merged("one", "two", kind="transactional"),
        fails="before commit",
        says="start once with these, and stop that run",
    ),
    "the same, and its id comes before theirs": Change(
        merged("two"), merged("one", "two"), says="joins them needs an id after theirs"
    ),
    "a stream less that shares batches with others": Change(merged("one", "two"), merged("one")),
    "the same, and its id is the smallest of theirs": Change(
        merged("one", "two"), merged("two"), says=ADOPT
    ),
    "one less and one more of these": Change(
        merged("one", "two"), merged("one", "other"), says="Give the streams their old ids"
    ),
    "more partitions of a source, or fewer": Change(
        shelved("a", "b"), shelved("a", "c", "d"), between=shelved("a", "b", "c")
    ),
    "a stream more with batches of its own": Change(both("n"), both("n", more=("two",))),
    "a stream with batches of its own is left out": Change(
        both("n", more=("two",)), both("n"), says=OLD_IDS
    ),
    "another source of a streaming DataFrame": Change(
        framed(),
        framed("rate"),
        spark=True,
        says=OLD_SOURCE,
    ),
    "another path of a streaming DataFrame of files": Change(
        framed(), framed("others"), spark=True, says="Give the stream its old path"
    ),
    "another output mode of a streaming DataFrame": Change(
        framed(mode="update"), framed(mode="complete"), spark=True
    ),
    "another `until=` of a streaming DataFrame with a `history=`": Change(
        framed(until="b"), framed(until="c"), spark=True
    ),
    "a spout where there was a streaming DataFrame": Change(
        framed(name="words"), words(), spark=True, says=ADOPT
    ),
    "steps between a stream and a state": Change(words(), words(), between=words(step=_upper)),
    "parallelism": Change(words(), words(), between=words(partitions=3)),
    "the engine": Change(words(), words(), {"engine": "spark"}, spark=True),
    "options of `start`: trigger, retries, `max_pending`": Change(
        words(), words(), {"retries": 1, "max_pending": 3}
    ),
    "queries, and streams without a state": Change(words(), queried),
    "the rows of a static stream": Change(rows_of_frame(2), rows_of_frame(3), spark=True),
    "the aggregator behind a DRPC stream that updates": Change(asked(), asked(Largest())),
    "the class of a committer bolt": Change(committed(Committer()), committed(Other())),
    "a log that an older version wrote": Change(words(), words(Sum()), older=True),
}
