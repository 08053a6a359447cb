"""Topologies made at random, and what they come to, computed tuple by tuple and no other way.

The model shares no code with the library: a stream is a list of tuples with plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain as flattened
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.spark.files import Files
from tests.topologies.time_windows import Model
from trident import (
    Aggregator,
    CombinerAggregator,
    Count,
    Duration,
    Fields,
    FilterNull,
    FirstN,
    FlatMapFunction,
    Function,
    JoinOutFieldsMode,
    JoinType,
    MapGet,
    Max,
    Min,
    PlainFunction,
    ReducerAggregator,
    SessionWindow,
    SlidingCountWindow,
    SlidingDurationWindow,
    Split,
    Sum,
    TridentCollector,
    TridentOperationContext,
    TridentTopology,
    vectorised,
)
from trident.api.stream import Stream
from trident.backends.memory import MemoryMapState
from trident.operations.interfaces import Filter, MapFunction
from trident.states import OpaqueMap
from trident.states.maps.factory import MapStateFactory
from trident.storm import CustomStreamGrouping, Equals, GroupedMultiReducer, MultiReducer, Negate

Row = tuple[Any, ...]
Rows = list[Row]
Schema = tuple[tuple[str, str], ...]
"""Names and types."""

SOURCE: Schema = (("s", "string"), ("n", "long"), ("x", "double"))
KNOWN = [(None, 7), ("", 8), ("a", 9), (0, 10), (1, 11), (1.0, 12)]
"""What the state holds that topologies only read."""
NOON, LATER = datetime(2026, 7, 1, 12, 0, 0, 5, UTC), timezone(timedelta(hours=5))
TYPED: dict[str, list[tuple[Any, Any]]] = {
    "boolean": [(None, None), (True, True), (False, False)],
    "date": [(None, None), (NOON.date(), NOON.date()), (date.min, date.min)],
    "timestamp": [(None, None), (NOON, NOON), (NOON.astimezone(LATER), NOON)],
    "timestamp_ntz": [(None, None), (datetime.min, datetime.min), (datetime.max, datetime.max)],
    "decimal(9,2)": [
        *((None, None), (Decimal("1.5"), Decimal("1.50")), (Decimal("1.500"), Decimal("1.50"))),
        (-2, Decimal("-2.00")),
    ],
    "binary": [(None, None), (b"a\xff", b"a\xff"), (bytearray(b"a\xff"), b"a\xff"), (b"", b"")],
    "array<date>": [(None, None), ([], []), ((date.min, None), [date.min, None])],
    "struct<a:double,b:string>": [
        *((None, None), ((1, "x"), {"a": 1.0, "b": "x"}), ({"b": "x"}, {"a": None, "b": "x"})),
        ({"b": "x", "a": 1}, {"a": 1.0, "b": "x"}),
    ],
}
"""Values of other types as a function makes them, and as streams have them."""
STRUCT, TURNED = "struct<a:double,b:string>", "struct<b:string,a:double>"
MEETING = {
    "decimal(9,2)": ("decimal(10,4)", "decimal(11,4)"),
    "decimal(11,4)": ("decimal(9,2)", "decimal(11,4)"),
    STRUCT: (TURNED, STRUCT),
    TURNED: (STRUCT, TURNED),
}
"""Types with another one of the same values, and the type of both where streams meet."""


def turned(value: Any, kind: str) -> Any:
    """A value as its field has it where that is of one of the types above."""
    if kind.startswith("decimal") and value is not None:
        return value.quantize(Decimal("0.01" if kind == "decimal(9,2)" else "0.0001"))
    if kind in MEETING and value is not None:
        return {name: value[name] for name in ("ab" if kind == STRUCT else "ba")}
    return value


def typed(schema: Schema, kinds: Sequence[str]) -> str:
    """Fields of a schema, of other types."""
    return ", ".join(f"{name} {kind}" for (name, _), kind in zip(schema, kinds, strict=True))


def look(value: Any) -> str:
    """What tells values apart as keys are told apart."""
    if isinstance(value, dict):
        return repr(sorted((name, look(one)) for name, one in value.items()))
    return repr(value.normalize() if isinstance(value, Decimal) else value)


@dataclass
class World:
    """One topology while it is built, and what the model keeps from batch to batch."""

    topology: TridentTopology
    folder: Path
    states: dict[str, MapStateFactory] = field(default_factory=dict)
    model: dict[str, dict[Row, Any]] = field(default_factory=dict)

    def factory(self, name: str, *, in_tasks: bool) -> MapStateFactory:
        """A state of that name: in memory, or one that tasks update."""
        made: MapStateFactory = MemoryMapState.Factory()
        if in_tasks:
            folder = self.folder / f"state-{name}"
            folder.mkdir()
            made = OpaqueMap.factory(Files(str(folder)), name=name)
        self.states[name] = made
        return made


@dataclass(frozen=True)
class Step:
    """One step of a chain.

    Parameters
    ----------
    text : str
        What it is, for a failure.
    schema : Schema
        The fields after it.
    build : callable
        Adds it to a stream.
    expect : callable
        What it makes of a batch, in the model.
    """

    text: str
    schema: Schema
    build: Callable[[World, Stream], Stream]
    expect: Callable[[World, Rows], Rows]

    def __repr__(self) -> str:
        return self.text


# Operations of a user.


def stretched(n: int | None) -> list[int]:
    return [] if n is None else [n, n + 1][: n % 3]


def pairs(s: str | None, n: int | None) -> Iterator[tuple[str, int]]:
    yield f"{s}", len(s or "")
    if n:
        yield "more", n


def is_odd(n: int | None) -> bool:
    return n is not None and n % 2 == 1


def described(*values: Any) -> tuple[str, int]:
    return "".join(map(repr, values)), len(values)


def as_it_is(*values: Any) -> Row:
    return values


def twice(*values: Any) -> list[tuple[str, int]]:
    return [described(*values)] * 2


def by_look(a: Row, b: Row) -> int:
    one, other = repr(tuple(a)), repr(tuple(b))
    return (one > other) - (one < other)


def halves(batch: pa.RecordBatch) -> pa.RecordBatch:
    [numbers] = batch.columns
    even = pc.equal(pc.bit_wise_and(numbers, 1), 0)
    some = batch.filter(pc.fill_null(even, False)).column(0)
    return pa.record_batch([some, pc.divide(pc.cast(some, pa.float64()), 2.0)], ["n", "half"])


def looked_at(*values: Any) -> None:
    assert values


class Typed(PlainFunction):
    """A value of a type."""

    def __init__(self, kind: str) -> None:
        self.values = [(given,) for given, _ in TYPED[kind]]

    def expand(self, n: int | None) -> Sequence[Any]:
        return [self.values[(n or 0) % len(self.values)]]


class Letters(Function):
    output_types = (str,)

    def execute(self, tuple: Any, collector: TridentCollector) -> None:
        for letter in (tuple[0] or "")[:2]:
            collector.emit([letter])


class Whereabouts(Function):
    """Which partition a tuple is in, where that is certain, and how many there are."""

    output_types = (int, int)

    def __init__(self, certain: bool) -> None:
        self.certain = certain

    def prepare(self, conf: Any, context: TridentOperationContext) -> None:
        index = context.getPartitionIndex() if self.certain else -1
        self.found = index, context.numPartitions()

    def execute(self, tuple: Any, collector: TridentCollector) -> None:
        collector.emit(self.found)


class FirstAndLast(CustomStreamGrouping):
    """Copies tuples to the first partition and to the last."""

    def chooseTasks(self, targetTasks: Sequence[int], values: Any) -> Sequence[int]:
        assert values[0] == values[values.getFields().names[0]]
        return sorted({targetTasks[0], targetTasks[-1]})


class Small(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return bool((tuple[0] or 0) < 3)


class Described(MapFunction):
    output_types = (str, int)

    def execute(self, tuple: Any) -> Sequence[Any]:
        return described(*tuple)


class Twice(FlatMapFunction):
    output_types = (str, int)

    def execute(self, tuple: Any) -> Iterable[Sequence[Any]]:
        return twice(*tuple)


class Widest(CombinerAggregator[int]):
    """How many letters the longest text has."""

    output_types = (int,)

    def init(self, tuple: Any) -> int:
        return len(str(tuple[0]))

    def combine(self, a: int, b: int) -> int:
        return max(a, b)

    def zero(self) -> int:
        return 0


class Tuples(ReducerAggregator[int]):
    """How many tuples there are."""

    output_types = (int,)

    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


class TuplesOf(Aggregator[list[int]]):
    """How many tuples there are, too."""

    output_types = (int,)

    def init(self, batchId: object, collector: TridentCollector) -> list[int]:
        return [0]

    def aggregate(self, val: list[int], tuple: Any, collector: TridentCollector) -> None:
        val[0] += 1

    def complete(self, val: list[int], collector: TridentCollector) -> None:
        collector.emit(val)


class Letterset(ReducerAggregator[str]):
    """The letters that there are, in order."""

    output_types = (str,)

    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: Any) -> str:
        return "".join(sorted({*curr, *str(tuple[0])}))


class Tally(Aggregator[list[int]]):
    """How many tuples there were and how many were null, and each null at once."""

    output_types = (str, int)

    def init(self, batchId: object, collector: TridentCollector) -> list[int]:
        return [0, 0]

    def aggregate(self, val: list[int], tuple: Any, collector: TridentCollector) -> None:
        val[0] += 1
        if tuple[0] is None:
            val[1] += 1
            collector.emit(("null", val[1]))

    def complete(self, val: list[int], collector: TridentCollector) -> None:
        collector.emit(("all", val[0]))


def together(all: list[Any], some: list[Any]) -> tuple[int, str]:
    return len(all) - len(some), "".join(sorted({letter for v in some for letter in repr(v)}))


class Together(MultiReducer[tuple[list[Any], list[Any]]]):
    """How many more tuples the first stream has, and the letters of the second's."""

    output_types = (str, int, str)

    def init(self, collector: TridentCollector) -> tuple[list[Any], list[Any]]:
        return [], []

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> None:
        assert input[input.getFields().names[0]] == input[0] or input[0] != input[0]
        state[streamIndex].append(input[0])

    def complete(self, state: Any, collector: TridentCollector) -> None:
        collector.emit(("()", *together(*state)))


class TogetherInGroups(GroupedMultiReducer[Any]):
    output_types = (str, int, str)

    def init(self, collector: TridentCollector, group: Any) -> Any:
        return None

    def execute(self, state: Any, streamIndex: int, group: Any, input: Any, collector: Any) -> Any:
        state = state or ([], [])
        state[streamIndex].append(input[0])
        return state

    def complete(self, state: Any, group: Any, collector: TridentCollector) -> None:
        collector.emit((repr(tuple(group)), *together(*state)))


# Aggregates in the model: what one group's values of a field come to.

Fold = Callable[[list[Any]], list[Row]]


def the_least(values: list[Any]) -> list[Row]:
    return [(min((v for v in values if v is not None), default=None),)]


def the_greatest(values: list[Any]) -> list[Row]:
    return [(max((v for v in values if v is not None), default=None),)]


def tally(values: list[Any]) -> list[Row]:
    nulls = values.count(None)
    return [*(("null", n + 1) for n in range(nulls)), ("all", len(values))]


@dataclass(frozen=True)
class Aggregate:
    """An aggregator, what it takes and makes, and the model of it.

    Parameters
    ----------
    make : callable
        Makes the aggregator.
    fold : callable
        What the values of a group come to.
    makes : callable
        From the type of the field to the types of the outputs.
    merge : callable or None
        For states: what the stored value and the batch's come to.
    numbers : bool
        Whether it takes numbers only.
    ordered : bool
        Whether it takes only what has an order.
    """

    make: Callable[[], Any]
    fold: Fold
    makes: Callable[[str], tuple[str, ...]]
    merge: Callable[[Any, Any], Any] | None = None
    numbers: bool = False
    ordered: bool = False


def number(kind: str, value: Any) -> Any:
    return float(value) if kind == "double" and value is not None else value


AGGREGATES = (
    Aggregate(Count, lambda values: [(len(values),)], lambda _: ("long",), lambda a, b: a + b),
    Aggregate(
        Sum,
        lambda values: [(sum(v for v in values if v is not None),)],
        lambda kind: (kind,),
        lambda a, b: a + b,
        numbers=True,
    ),
    Aggregate(
        Min,
        the_least,
        lambda kind: (kind,),
        lambda a, b: the_least([a, b])[0][0],
        ordered=True,
    ),
    Aggregate(
        Max,
        the_greatest,
        lambda kind: (kind,),
        lambda a, b: the_greatest([a, b])[0][0],
        ordered=True,
    ),
    Aggregate(
        Widest,
        lambda values: [(max((len(str(v)) for v in values), default=0),)],
        lambda _: ("long",),
        max,
    ),
    Aggregate(
        Letterset,
        lambda values: [("".join(sorted({letter for v in values for letter in str(v)})),)],
        lambda _: ("string",),
        lambda a, b: "".join(sorted({*a, *b})),
    ),
    Aggregate(Tally, tally, lambda _: ("string", "long")),
)


def list_of(parts: Iterable[Iterable[Any]]) -> list[Any]:
    return list(flattened.from_iterable(parts))


class Key(tuple[Any, ...]):
    """A key in the model; what looks alike is equal, lists and dicts too."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and list(map(look, self)) == list(map(look, other))

    def __hash__(self) -> int:
        return hash(tuple(map(look, self)))


def grouped(rows: Rows, key: Sequence[int], value: int) -> dict[Row, list[Any]]:
    found: dict[Row, list[Any]] = {}
    for row in rows:
        found.setdefault(Key(row[place] for place in key), []).append(row[value])
    return found


# Joins in the model: every pair is looked at.


def joined_rows(
    sides: Sequence[tuple[Rows, Sequence[int]]],
    required: Sequence[bool],
    *,
    compact: bool,
    width: int = 2,
) -> Rows:
    """What streams come to, each given with the places of its key."""

    def key(row: Row | None, places: Sequence[int]) -> Row | None:
        return None if row is None else Key(row[place] for place in places)

    made = []
    for rows in product(*([None, *rows] for rows, _ in sides)):
        keys = [key(row, places) for row, (_, places) in zip(rows, sides, strict=True)]
        there = [one for one in keys if one is not None]
        if not there or any(other != there[0] for other in there):
            continue
        if len(there) > 1 and None in there[0]:
            continue
        absent = [place for place, row in enumerate(rows) if row is None]
        if any(required[place] or _has(sides[place], there[0]) for place in absent):
            continue
        values = [[None if row is None else row[n] for n in range(width)] for row in rows]
        if compact:
            values = [
                [value for n, value in enumerate(own) if n not in places]
                for own, (_, places) in zip(values, sides, strict=True)
            ]
        made.append((*(there[0] if compact else ()), *list_of(values)))
    return made


def _has(side: tuple[Rows, Sequence[int]], key: Row) -> bool:
    rows, places = side
    return None not in key and any(Key(row[place] for place in places) == key for row in rows)


# Steps.


class Chain:
    """Draws steps one after the other; each knows the fields that those before it have made."""

    def __init__(self, random: Random, label: str) -> None:
        self._random = random
        self._label = label
        self._made = 0
        self.steps: list[Step] = []
        self.schema = SOURCE

    def _new(self) -> str:
        self._made += 1
        return f"{self._label}{self._made}"

    def _field(self, *kinds: str) -> tuple[str, int] | None:
        """A field of one of some types, and its place."""
        places = [n for n, (_, kind) in enumerate(self.schema) if not kinds or kind in kinds]
        if not places:
            return None
        place = self._random.choice(places)
        return self.schema[place][0], place

    def _add(
        self,
        text: str,
        schema: Schema,
        build: Callable[[World, Stream], Stream],
        expect: Callable[[World, Rows], Rows],
    ) -> None:
        self.steps.append(Step(text, schema, build, expect))
        self.schema = schema

    def each(self) -> None:
        text, long = self._field("string"), self._field("long")
        kinds = [*["split", "words", "letters"] * bool(text), *["stretched"] * bool(long)]
        if not kinds:
            return
        kind = self._random.choice([*kinds, *["pairs"] * bool(text and long)])
        new, schema = self._new(), self.schema
        if kind == "split" and text:
            name, at = text
            self._add(
                f"each({name}, Split())",
                (*schema, (new, "string")),
                lambda w, s: s.each(name, Split(), new),
                lambda w, rows: [(*r, word) for r in rows for word in (r[at] or "").split()],
            )
        if kind == "words" and text:
            name, at = text
            self._add(
                f"each({name}, Split()).project({new})",
                ((new, "string"),),
                lambda w, s: s.each(name, Split(), new).project(new),
                lambda w, rows: [(word,) for r in rows for word in (r[at] or "").split()],
            )
        if kind == "letters" and text:
            name, at = text
            self._add(
                f"each({name}, Letters())",
                (*schema, (new, "string")),
                lambda w, s: s.each(name, Letters(), new),
                lambda w, rows: [(*r, letter) for r in rows for letter in (r[at] or "")[:2]],
            )
        if kind == "stretched" and long:
            name, at = long
            self._add(
                f"each({name}, stretched)",
                (*schema, (new, "long")),
                lambda w, s: s.each(name, stretched, new),
                lambda w, rows: [(*r, made) for r in rows for made in stretched(r[at])],
            )
        if kind == "pairs" and text and long:
            (a, at), (b, beside) = text, long
            more = self._new()
            self._add(
                f"each({a}, {b}, pairs)",
                (*schema, (new, "string"), (more, "long")),
                lambda w, s: s.each([a, b], pairs, [new, more]),
                lambda w, rows: [(*r, *made) for r in rows for made in pairs(r[at], r[beside])],
            )

    def meet(self) -> None:
        """A field that streams may have in several types, and streams that meet with it."""
        self.type([kind for kind in TYPED if kind in MEETING])
        self._random.choice([self.merge, self.join])()

    def type(self, kinds: Sequence[str] = tuple(TYPED)) -> None:
        found = self._field("long")
        if found is None:
            return
        (name, at), new = found, self._new()
        kind = self._random.choice(kinds)
        made = [value for _, value in TYPED[kind]]
        self._add(
            f"each({name}, Typed({kind}))",
            (*self.schema, (new, kind)),
            lambda w, s: s.each(name, Typed(kind), f"{new} {kind}"),
            lambda w, rows: [(*r, made[(r[at] or 0) % len(made)]) for r in rows],
        )

    def filter(self) -> None:
        schema = self.schema
        found = self._field()
        assert found is not None
        name, at = found
        same = [n for n, (_, k) in enumerate(schema) if k == schema[at][1] and n != at]
        keeps: dict[str, tuple[Any, Any, Callable[[Row], bool]]] = {
            "null": ([name], FilterNull(), lambda r: r[at] is not None),
            "negate": ([name], Negate(FilterNull()), lambda r: r[at] is None),
        }
        if schema[at][1] == "long":
            keeps["odd"] = ([name], is_odd, lambda r: is_odd(r[at]))
            keeps["small"] = ([name], Small(), lambda r: (r[at] or 0) < 3)
        if same:
            other = self._random.choice(same)
            keeps["equals"] = ([name, schema[other][0]], Equals(), lambda r: r[at] == r[other])
        kind = self._random.choice([*keeps])
        inputs, operation, keep = keeps[kind]
        self._add(
            f"filter({inputs}, {kind})",
            schema,
            lambda w, s: s.filter(inputs, operation),
            lambda w, rows: list(filter(keep, rows)),
        )

    def replace(self) -> None:
        """Map and flatMap, by a plain function and by an object."""
        kind = self._random.choice([described, Described, twice, Twice])
        a, b = self._new(), self._new()
        flat = kind in (twice, Twice)
        operation = kind() if isinstance(kind, type) else kind
        model = twice if flat else lambda *values: [described(*values)]
        self._add(
            f"map({kind.__name__})",
            ((a, "string"), (b, "long")),
            lambda w, s: (s.flatMap if flat else s.map)(operation, [a, b]),
            lambda w, rows: [made for row in rows for made in model(*row)],
        )

    def vectorise(self) -> None:
        """A function of record batches: the numbers that are even, and their halves."""
        found = self._field("long")
        if found is None:
            return
        (name, at), new = found, (self._new(), self._new())
        self._add(
            f"flatMap(vectorised(halves of {name}))",
            ((new[0], "long"), (new[1], "double")),
            lambda w, s: s.project(name).flatMap(
                vectorised(halves), f"{new[0]} long, {new[1]} double"
            ),
            lambda w, rows: [
                (row[at], row[at] / 2) for row in rows if row[at] is not None and row[at] % 2 == 0
            ],
        )

    def look(self) -> None:
        self._add(
            "peek().name()",
            self.schema,
            lambda w, s: s.peek(looked_at).name("looked at"),
            lambda w, rows: rows,
        )

    def project(self) -> None:
        names = [name for name, _ in self.schema]
        kept = self._random.sample(names, self._random.randint(1, len(names)))
        places = [names.index(name) for name in kept]
        self._add(
            f"project({kept})",
            tuple(self.schema[place] for place in places),
            lambda w, s: s.project(kept),
            lambda w, rows: [tuple(row[place] for place in places) for row in rows],
        )

    def move(self) -> None:
        how = self._random.choice(
            ["shuffle", "local", "by", "global", "batchGlobal", "broadcast", "chosen"]
        )
        hint = self._random.randint(1, 4)
        found = self._field()
        name = found[0] if found else ""
        moves: dict[str, Callable[[Stream], Stream]] = {
            "shuffle": lambda s: s.shuffle().parallelismHint(hint),
            "local": lambda s: s.localOrShuffle().identityPartition().parallelismHint(hint),
            "by": lambda s: s.partitionBy(name).parallelismHint(hint),
            "chosen": lambda s: s.partition(FirstAndLast()).parallelismHint(hint),
            "global": lambda s: s.global_(),
            "batchGlobal": lambda s: s.batchGlobal(),
            "broadcast": lambda s: s.broadcast().parallelismHint(hint),
        }
        copies = {"broadcast": hint, "chosen": min(hint, 2)}.get(how, 1)
        self._add(
            f"{how}({name}).parallelismHint({hint})",
            self.schema,
            lambda w, s: moves[how](s),
            lambda w, rows: rows * copies,
        )

    def locate(self) -> None:
        """Which partitions tuples have moved to."""
        broadcasts, count = self._random.choice([True, False]), self._random.randint(1, 4)
        indexes = range(count) if broadcasts else [-1]
        index, among, first = self._new(), self._new(), self.schema[0][0]

        def build(w: World, s: Stream) -> Stream:
            moved = (s.broadcast() if broadcasts else s.shuffle()).parallelismHint(count)
            return moved.each(first, Whereabouts(broadcasts), [index, among])

        self._add(
            f"{'broadcast' if broadcasts else 'shuffle'}({count}).each(Whereabouts())",
            (*self.schema, (index, "long"), (among, "long")),
            build,
            lambda w, rows: [(*row, at, count) for row in rows for at in indexes],
        )

    def aggregate(self) -> None:
        """Of a batch, of its groups, or of one partition that holds all of it."""
        found, by = self._aggregate(AGGREGATES), self._key()
        if found is None:
            return
        aggregate, (name, at) = found
        within = self._random.choice([True, False])
        hint = self._random.choice([None, 1, 2, 4])
        outputs = [self._new() for _ in aggregate.makes("")]
        kinds = aggregate.makes(self.schema[at][1])
        keys = [self.schema[place][0] for place in by]

        def build(w: World, s: Stream) -> Stream:
            start = s.global_() if within else s
            given: Any = start.groupBy(keys) if keys else start
            call = given.partitionAggregate if within else given.aggregate
            made: Stream = call(name, aggregate.make(), outputs)
            if within:
                made = made.toStream() if keys else made
            return made.parallelismHint(hint) if hint and keys and not within else made

        def expect(w: World, rows: Rows) -> Rows:
            groups = grouped(rows, by, at)
            if not by:
                groups = groups or {(): []}
            return [
                (*key, *(number(kind, value) for kind, value in zip(kinds, made, strict=True)))
                for key, values in groups.items()
                for made in aggregate.fold(values)
            ]

        self._add(
            f"{'partitionA' if within else 'a'}ggregate({keys}, {name}, {aggregate.make.__name__})",
            (*(self.schema[place] for place in by), *zip(outputs, kinds, strict=True)),
            build,
            expect,
        )

    def chained(self) -> None:
        """Several aggregators at once, of a batch or of its groups."""
        count = self._random.choice([1, 2, 2, 3])
        found = [one for _ in range(count) if (one := self._aggregate(AGGREGATES))]
        if not found:
            return
        by, schema = self._key(), self.schema
        keys = [schema[place][0] for place in by]
        outputs = [[self._new() for _ in aggregate.makes("")] for aggregate, _ in found]
        kinds = [aggregate.makes(schema[at][1]) for aggregate, (_, at) in found]

        def build(w: World, s: Stream) -> Stream:
            chain: Any = (s.groupBy(keys) if keys else s).chainedAgg()
            for (aggregate, (name, _)), made in zip(found, outputs, strict=True):
                chain = chain.aggregate(name, aggregate.make(), made)
            ended: Stream = chain.chainEnd()
            return ended

        def expect(w: World, rows: Rows) -> Rows:
            of_each = [grouped(rows, by, at) for _, (_, at) in found]
            groups = [*of_each[0]] if by or rows else [()]
            made: Rows = []
            for key in groups:
                folds = [
                    aggregate.fold(values.get(key, []))
                    for (aggregate, _), values in zip(found, of_each, strict=True)
                ]
                for row in product(*folds):
                    values = zip(list_of(kinds), list_of(row), strict=True)
                    made.append((*key, *(number(kind, value) for kind, value in values)))
            return made

        self._add(
            f"chainedAgg({keys}, {[(a.make.__name__, name) for a, (name, _) in found]})",
            (
                *(schema[place] for place in by),
                *zip(list_of(outputs), list_of(kinds), strict=True),
            ),
            build,
            expect,
        )

    def extreme(self) -> None:
        """The least or greatest tuple, or the first ones in order."""
        found = self._field("string", "long")
        kind = self._random.choice(["whole", *["by", "first"] * bool(found)])
        greatest, count = self._random.choice([True, False]), self._random.randint(1, 4)
        pick: Callable[..., Any] = max if greatest else min
        schema = self.schema
        if kind == "whole":

            def build(w: World, s: Stream) -> Stream:
                given = s.global_()
                return given.max(by_look) if greatest else given.min(by_look)

            self._add(
                f"global().{pick.__name__}(by_look)",
                schema,
                build,
                lambda w, rows: [pick(rows, key=repr)] if rows else [],
            )
        if kind == "by" and found:
            name, at = found  # of a tie any tuple may be left, as their order is

            def build_by(w: World, s: Stream) -> Stream:
                given = s.global_()
                return (given.maxBy(name) if greatest else given.minBy(name)).project(name)

            def expect_by(w: World, rows: Rows) -> Rows:
                values = [row[at] for row in rows if row[at] is not None]
                return [(pick(values),)] if values else []

            self._add(f"global().{pick.__name__}By({name})", (schema[at],), build_by, expect_by)
        if kind == "first" and found:
            name, at = found

            def expect_first(w: World, rows: Rows) -> Rows:
                values = sorted((r[at] for r in rows if r[at] is not None), reverse=greatest)
                nulls = [None] * (len(rows) - len(values))
                return [(value,) for value in [*values, *nulls][:count]]

            self._add(
                f"FirstN({count}, {name}, reverse={greatest})",
                (schema[at],),
                lambda w, s: s.applyAssembly(FirstN(count, name, greatest)).project(name),
                expect_first,
            )

    def persist(self) -> None:
        """A state, after which goes on what it held before, its new values, or neither."""
        found, by = self._aggregate([one for one in AGGREGATES if one.merge]), self._key()
        if found is None or not by:
            return
        aggregate, (name, at) = found
        assert aggregate.merge is not None
        merge = aggregate.merge
        after = self._random.choice(["queried", "new values", "the stream"])
        in_tasks = self._random.choice([True, False])
        hint = self._random.choice([None, 1, 2, 4])
        new, known, schema = self._new(), self._new(), self.schema
        [kind] = aggregate.makes(schema[at][1])
        keys = [schema[place][0] for place in by]

        def build(w: World, s: Stream) -> Stream:
            factory = w.factory(new, in_tasks=in_tasks)
            given = s.groupBy(keys)
            state = given.persistentAggregate(factory, name, aggregate.make(), new, name=new)
            if hint:
                state = state.parallelismHint(hint)
            if after == "queried":
                return s.stateQuery(state, keys, MapGet(), known)
            return s if after == "the stream" else state.newValuesStream()

        def expect(w: World, rows: Rows) -> Rows:
            stored = w.model.setdefault(new, {})
            before = dict(stored)
            fresh: Rows = []
            for key, values in grouped(rows, by, at).items():
                [(partial,)] = aggregate.fold(values)
                old = stored.get(key)
                value = number(kind, partial if old is None else merge(old, partial))
                stored[key] = value
                fresh.append((*key, value))
            if after == "new values":
                return fresh
            if after == "the stream":
                return rows
            return [(*row, before.get(Key(row[place] for place in by))) for row in rows]

        schemas = {
            "queried": (*schema, (known, kind)),
            "new values": (*(schema[p] for p in by), (new, kind)),
            "the stream": schema,
        }
        text = f"persistentAggregate({keys}, {name}, {aggregate.make.__name__}, tasks={in_tasks})"
        self._add(f"{text}, {after}", schemas[after], build, expect)

    def window(self) -> None:
        """Windows by count, of which only the number of tuples follows from what is in a batch."""
        by, new, schema = self._key(), self._new(), self.schema
        length = self._random.randint(1, 4)
        slide = self._random.randint(1, length)
        make = self._random.choice([Count, Tuples, TuplesOf])
        in_tasks = self._random.choice([True, False])
        keys, name = [schema[place][0] for place in by], schema[0][0]
        inputs: list[Any] = [] if make is Count else [name]

        def build(w: World, s: Stream) -> Stream:
            factory = w.factory(new, in_tasks=in_tasks)
            del w.states[new]  # the model doesn't say what it holds
            given: Any = s.groupBy(keys) if keys else s
            config = SlidingCountWindow.of(length, slide)
            return given.window(config, factory, *inputs, make(), new)

        def expect(w: World, rows: Rows) -> Rows:
            seen = w.model.setdefault(new, {})
            made: Rows = []
            for row in rows:
                key = Key(row[place] for place in by)
                seen[key] = seen.get(key, 0) + 1
                if seen[key] % slide == 0:
                    made.append((*key, min(length, seen[key])))
            return made

        self._add(
            f"window({keys}, {length}, {slide}, {make.__name__}, tasks={in_tasks})",
            (*(schema[place] for place in by), (new, "long")),
            build,
            expect,
        )

    def time_window(self) -> None:
        """Windows by a number of tuples as their time, what comes too late left out."""
        found = self._field("long")
        if found is None:
            return
        (name, at), by, new, schema = found, self._key(), self._new(), self.schema
        slide, lag = self._random.randint(1, 3), Duration.of(self._random.choice([0, 2]))
        length = slide * self._random.choice([1, 2])
        lateness = Duration.of(self._random.choice([0, 3]))
        windows = [SlidingDurationWindow.of(Duration.of(length), Duration.of(slide))]
        windows += [SessionWindow.of(Duration.of(length))]
        window: Any = self._random.choice(windows)
        window = window.withTimestampField(name).withLag(lag).withLateness(lateness)
        make = self._random.choice([Count, Tuples, TuplesOf])
        in_tasks = self._random.choice([True, False])
        keys = [schema[place][0] for place in by]
        inputs: list[Any] = [] if make is Count else [name]

        def build(w: World, s: Stream) -> Stream:
            factory = w.factory(new, in_tasks=in_tasks)
            del w.states[new]  # the model doesn't say what it holds
            timed = s.filter(name, FilterNull())
            given: Any = timed.groupBy(keys) if keys else timed
            made: Stream = given.window(window, factory, *inputs, make(), new)
            return made.project([*keys, new])

        def expect(w: World, rows: Rows) -> Rows:
            model = w.model.setdefault(new, {}).setdefault((), Model(window))
            timed = [(Key(row[p] for p in by), row[at], 0) for row in rows if row[at] is not None]
            return [(*key, len(values)) for key, values, _, _ in model.batch(timed)]

        self._add(
            f"window({keys}, {window}, {make.__name__}, tasks={in_tasks})",
            (*(schema[place] for place in by), (new, "long")),
            build,
            expect,
        )

    def ask(self) -> None:
        """A query of a state that is only read."""
        found = self._field()
        assert found is not None
        (name, at), new = found, self._new()

        def build(w: World, s: Stream) -> Stream:
            factory = MemoryMapState.Factory()
            state = factory.makeState()
            state.beginCommit(1)
            state.multiPut([(key,) for key, _ in KNOWN], [value for _, value in KNOWN])
            state.commit(1)
            static = w.topology.newStaticState(factory, name=f"static {new}")
            return s.stateQuery(static, name, MapGet(), f"{new} long")

        def known(value: Any) -> Any:
            return next((found for key, found in KNOWN if repr(key) == repr(value)), None)

        self._add(
            f"stateQuery({name})",
            (*self.schema, (new, "long")),
            build,
            lambda w, rows: [(*row, known(row[at])) for row in rows],
        )

    def merge(self) -> None:
        found = self._field()
        assert found is not None
        (name, at), names = found, [self._new() for _ in self.schema]
        kinds = [kind for _, kind in self.schema]
        others = [MEETING.get(kind, (kind, kind)) for kind in kinds]
        given = typed(self.schema, [kind for kind, _ in others])
        after = [kind for _, kind in others]

        def build(w: World, s: Stream) -> Stream:
            other = s.filter(name, FilterNull())
            if after != kinds or any(kind in MEETING for kind in kinds):
                other = other.map(as_it_is, given)
            return w.topology.merge(Fields(*names), s, other)

        def expect(w: World, rows: Rows) -> Rows:
            merged = rows + [row for row in rows if row[at] is not None]
            return [tuple(map(turned, row, after)) for row in merged]

        schema = tuple(zip(names, after, strict=True))
        self._add(f"merge(s, s.filter({name}, FilterNull()) of {given})", schema, build, expect)

    def join(self) -> None:
        """A stream joined with what is left of it after filters."""
        found = self._field(*MEETING) or self._field("string", "long")
        if found is None or any(step.text.startswith("join") for step in self.steps):
            return  # several joins would come to more tuples than there is time for
        (name, at), schema = found, self.schema
        other = self._random.choice([n for n, (_, k) in enumerate(schema) if k == schema[at][1]])
        beside = schema[other][0]
        kinds = self._random.choices([True, False], k=self._random.choice([2, 2, 3]))
        compact, places = self._random.choice([True, False]), [at, other, at][: len(kinds)]
        # The first stream has the key as the schema says, the others have it in their own way.
        second, common = MEETING.get(schema[at][1], (schema[at][1], schema[at][1]))
        ways = [[kind for _, kind in schema] for _ in kinds]
        for place, kept in list(zip(places, ways, strict=True))[1:]:
            kept[place] = second
        own = [
            [kind for n, kind in enumerate(kept) if n != place or not compact]
            for place, kept in zip(places, ways, strict=True)
        ]
        types = [*[common] * compact, *list_of(own)]
        after = tuple((self._new(), kind) for kind in types)
        hint = self._random.choice([None, None, 2])

        def build(w: World, s: Stream) -> Stream:
            streams = [s, s.filter(name, FilterNull()), s.filter(beside, Negate(FilterNull()))]
            made = w.topology.join(
                [
                    stream if kept == ways[0] else stream.map(as_it_is, typed(schema, kept))
                    for stream, kept in zip(streams, ways, strict=False)
                ],
                [schema[place][0] for place in places],
                [new for new, _ in after],
                [JoinType.INNER if due else JoinType.OUTER for due in kinds],
                JoinOutFieldsMode.COMPACT if compact else JoinOutFieldsMode.PRESERVE,
            )
            return made.parallelismHint(hint) if hint else made

        def expect(w: World, rows: Rows) -> Rows:
            some = [row for row in rows if row[at] is not None]
            none = [row for row in rows if row[other] is None]
            streams = [rows, some, none][: len(kinds)]
            streams = [
                [tuple(map(turned, row, kept)) for row in side]
                for side, kept in zip(streams, ways, strict=True)
            ]
            sides = list(zip(streams, [[place] for place in places], strict=True))
            made = joined_rows(sides, kinds, compact=compact, width=len(schema))
            return [tuple(map(turned, row, types)) for row in made]

        self._add(f"join({name}, {beside}, {kinds}, compact={compact})", after, build, expect)

    def reduce(self) -> None:
        """The stream and what a filter leaves of it, reduced together; with groups or without."""
        found = self._field()
        assert found is not None
        (name, at), by, schema = found, self._key()[:1], self.schema
        keys = [schema[place][0] for place in by]
        outputs = [self._new(), self._new(), self._new()]

        def build(w: World, s: Stream) -> Stream:
            some = s.filter(name, FilterNull())
            if not keys:
                return w.topology.multiReduce(name, s, name, some, Together(), outputs)
            grouped = [s.groupBy(keys), some.groupBy(keys)]
            return w.topology.multiReduce([[name]] * 2, grouped, TogetherInGroups(), outputs)

        def expect(w: World, rows: Rows) -> Rows:
            some = [row for row in rows if row[at] is not None]
            groups = grouped(rows, by, at) or ({} if by else {(): []})
            others = grouped(some, by, at)
            return [
                (repr(key), *together(values, others.get(key, [])))
                for key, values in groups.items()
            ]

        kinds = ("string", "long", "string")
        self._add(
            f"multiReduce({keys}, {name})",
            tuple(zip(outputs, kinds, strict=True)),
            build,
            expect,
        )

    def _key(self) -> list[int]:
        places = range(len(self.schema))
        return self._random.sample(places, min(len(places), self._random.choice([0, 1, 1, 2])))

    def _aggregate(self, those: Sequence[Aggregate]) -> tuple[Aggregate, tuple[str, int]] | None:
        aggregate = self._random.choice(those)
        kinds = ["long", "double"] if aggregate.numbers else []
        if aggregate.ordered:
            kinds = [kind for _, kind in self.schema if "<" not in kind]
        found = self._field(*kinds) if kinds or not aggregate.ordered else None
        return None if found is None else (aggregate, found)


KINDS = (
    *(Chain.each, Chain.filter, Chain.replace, Chain.look, Chain.project, Chain.move),
    *(Chain.locate, Chain.ask, Chain.merge, Chain.extreme, Chain.chained, Chain.join, Chain.window),
    Chain.time_window,
    *(Chain.reduce, Chain.vectorise, Chain.type, Chain.type, Chain.meet),
    *(Chain.aggregate, Chain.persist) * 3,  # of which there are the most kinds
)


TEXTS = [None, "", "a", "a b", "b  a", "b", "ä\u2003ö 🙂", "\0", "\0a b", " ", "1", '\x1f"\\']
NUMBERS = [None, -3, -1, 0, 1, 2, 5]
PARTS = [None, 0.0, 1.0, 0.5, -2.25, 1]


def rows(random: Random) -> Rows:
    """What a batch holds: values of which many are the same, so that they meet in groups."""
    size = random.choice([0, 1, 2, 3, 5, 8, 12])
    return [
        (random.choice(TEXTS), random.choice(NUMBERS), random.choice(PARTS)) for _ in range(size)
    ]


def chain(random: Random, label: str, most: int) -> list[Step]:
    """A stream's steps; some end with a projection, as then those before may leave fields out."""
    made = Chain(random, label)
    while len(made.steps) < most:
        random.choice(KINDS)(made)
    if random.choice([True, False]):
        made.project()
    return made.steps


@st.composite
def topologies(draw: st.DrawFn, streams: int) -> tuple[list[list[Step]], list[Rows]]:
    """The steps of some streams, and batches.

    What there is follows from one number: Hypothesis' own choices repeat each other, and most of
    the steps would never be there. Of a failure it finds fewer steps and batches that still fail.
    """
    random = Random(draw(st.integers(0, 2**60)))
    most, batches = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    chains = [chain(random, label, most) for label in "fghi"[:streams]]
    return chains, [rows(random) for _ in range(batches)]
