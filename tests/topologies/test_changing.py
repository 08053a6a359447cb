"""What comes of a topology that was changed: each row of docs/changing.md, and the rest of it."""

from __future__ import annotations

import logging
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.topologies.changed import (
    ADOPT,
    CHANGES,
    FIELDS,
    ROWS,
    Change,
    Declare,
    Pairs,
    Renamed,
    Told,
    both,
    committed,
    merged,
    tabled,
    tumbling,
    words,
)
from tests.topologies.conftest import Engine, contents
from trident import (
    Adopt,
    Count,
    Duration,
    FixedBatchSpout,
    GeneratorSpout,
    MapGet,
    Max,
    MemoryMapState,
    ReducerAggregator,
    Rows,
    SessionWindow,
    SlidingCountWindow,
    Sum,
    TridentTopology,
    TumblingCountWindow,
)
from trident.api.start import start
from trident.backends import StateSpec
from trident.backends.urls import state_from_url
from trident.batch.changes import check_none_staged
from trident.batch.start_options import StartOptions
from trident.errors import (
    DuplicateNameError,
    GuaranteeWarning,
    OperationTypeError,
    PlanError,
    TridentError,
)
from trident.log.entry import LogEntry
from trident.log.errors import (
    AdoptionError,
    ChangedTopologyError,
    CheckpointError,
    LogMismatchError,
    StagingError,
)
from trident.log.folders import Folder
from trident.log.staging import StagedFile, StagingArea
from trident.operations.annotations import identified
from trident.plan.substitution import plan_rebuild
from trident.states import ValueSchema
from trident.states.errors import LostStateError
from trident.states.maps.moving import swap_states
from trident.states.values import Token
from trident.testing.points import fail_at

PAGE = (Path(__file__).parents[2] / "docs" / "changing.md").read_text()
ROWS_OF_PAGE = dict(
    re.findall(r"^\| (?!change )([^|]+?) \| ([a-z ]+)(?:: [^|]+)? \|$", PAGE, re.MULTILINE)
)
PATIENCE = 60.0
SUMS = "Sum of n long by word string as long"


class Life:
    """The starts of a topology with one checkpoint."""

    def __init__(self, folder: Path, session: Any = None) -> None:
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.session = session

    def run(self, declare: Declare, **options: Any) -> None:
        """Start it, and run all batches that there are."""
        topology = declare(self.session, self.folder)
        requests = bool(topology.plan().updating)
        given = {"checkpoint": self.checkpoint, "trigger": None if requests else "available"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)
            run = topology.start(self.session, **given | options)
        with run:
            if requests:
                run.drpc.execute("add", "a", PATIENCE)
            else:
                run.awaitTermination(PATIENCE)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path)


def test_every_row_has_a_case() -> None:
    assert ROWS_OF_PAGE.keys() == CHANGES.keys()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.spark] if change.spark else [])
        for row, change in CHANGES.items()
    ],
)
def test_a_row_of_the_page_holds(
    row: str,
    life: Life,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    change = CHANGES[row]
    if change.spark:
        life.session = request.getfixturevalue("spark")
    if change.older:
        with monkeypatch.context() as patch:
            patch.setattr("trident.batch.opening.described_anew", lambda *given: {})
            life.run(change.before)
    elif change.fails:
        with fail_at(change.fails, 1, times=9), pytest.raises(Exception):  # noqa: B017, PT011
            life.run(change.before, retries=0)
    else:
        life.run(change.before)
    if change.between is not None:
        life.run(change.between)
    with caplog.at_level(logging.INFO, "trident"):
        caplog.clear()
        assert came_of(change, life, caplog) == ROWS_OF_PAGE[row]


def came_of(change: Change, life: Life, caplog: pytest.LogCaptureFixture) -> str:
    """What the page calls what came of a change."""
    try:
        life.run(change.after, **change.options)
    except ChangedTopologyError as error:
        accept = accepting(error)
        if not accept:
            return refused(change, str(error))
        if life.session is None:
            check_accepting(change, life, accept)
        return "refused unless accepted"
    except TridentError as error:
        return refused(change, str(error))
    told = {record.levelname for record in caplog.records if SAID.search(record.getMessage())}
    return {"WARNING": "warned", "INFO": "told"}.get(max(told, default=""), "free")


def refused(change: Change, error: str) -> str:
    """Look for the remedy in an error."""
    assert change.says
    assert re.search(change.says, error)
    return "refused"


SAID = re.compile("is no longer in the topology|is in the topology again|is new: it begins")
"""What a start says of states and streams that are new, gone or back."""


def accepting(error: ChangedTopologyError) -> dict[str, str]:
    """What the error says to accept."""
    found = re.search(r"start\(accept_change=({.*})\)\.$", str(error))
    parts = error.found.items()  # type: ignore[attr-defined]
    accept = {part.split("'")[1]: text for part, text in parts}
    assert found is None or found[1] == str(accept)
    return accept if found else {}


def check_accepting(change: Change, life: Life, accept: dict[str, str]) -> None:
    """What is accepted goes on, then and later; and the way back is a change as well."""
    with pytest.raises(ChangedTopologyError):
        life.run(change.after, accept_change={name: f"{text}?" for name, text in accept.items()})
    life.run(change.after, accept_change=accept)
    life.run(change.after)
    with pytest.raises(ChangedTopologyError):
        life.run(change.before)


def test_the_error_says_what_was_what_is_and_what_to_do(life: Life) -> None:
    life.run(words())
    with pytest.raises(ChangedTopologyError) as raised:
        life.run(words(Sum(), by="n"))
    assert str(raised.value) == (
        f"the log {life.checkpoint}/words/log was written with another topology: it has state "
        "'count' (Count by word string as long), found state 'count' (Sum of n long by n long as "
        "long). Restore it as it was; or give the state another name (name=…), under which it "
        "begins anew. To go on with the old values all the same: "
        "start(accept_change={'count': 'Sum of n long by n long as long'})."
    )


def test_all_that_has_changed_is_in_one_error(life: Life) -> None:
    life.run(words())
    with pytest.raises(ChangedTopologyError) as raised:
        life.run(words(Sum(), spout=Renamed(FIELDS, 3, *ROWS)))
    accept = accepting(raised.value)
    assert accept == {
        "words": "Renamed of word string, n long, at long",
        "count": SUMS,
    }
    one = {"count": accept["count"]}
    with pytest.raises(ChangedTopologyError, match="stream 'words'") as again:
        life.run(words(Sum(), spout=Renamed(FIELDS, 3, *ROWS)), accept_change=one)
    assert "state 'count'" not in str(again.value)
    assert str(accept) in str(again.value)


def test_a_refused_start_changes_nothing(life: Life) -> None:
    life.run(words())
    before = {path: path.read_bytes() for path in (life.checkpoint / "words").rglob("*.json")}
    with pytest.raises(ChangedTopologyError):
        life.run(words(Sum()))
    found = {path: path.read_bytes() for path in (life.checkpoint / "words").rglob("*.json")}
    assert found == before


def test_a_state_and_a_stream_of_one_name_are_accepted_together(life: Life) -> None:
    life.run(words(name="words"))
    with pytest.raises(ChangedTopologyError) as raised:
        life.run(words(Sum(), name="words", spout=Renamed(FIELDS, 3, *ROWS)))
    stream, state = raised.value.found.values()  # type: ignore[attr-defined]
    accept = {"words": f"{stream}; {state}"}
    assert f"start(accept_change={accept})" in str(raised.value)
    life.run(words(Sum(), name="words", spout=Renamed(FIELDS, 3, *ROWS)), accept_change=accept)


def test_a_stream_that_is_added_begins_at_its_beginning(life: Life) -> None:
    life.run(merged("one"))
    life.run(merged("one", "two"))
    state: Any = state_from_url(f"sqlite:{life.folder}/c.db?prefix=count").makeState()
    assert state.multiGet([("a",), ("b",)]) == [1, 1]
    state.close()


def test_streams_are_not_exchanged_under_a_batch_that_a_transactional_state_holds(
    life: Life,
) -> None:
    were, are = (merged("one", each, kind="transactional") for each in ("two", "other"))
    adopted: Any = {
        "checkpoint": life.folder / "new",
        "adopt": Adopt.from_checkpoint(life.checkpoint),
    }
    with fail_at("before commit", 2, times=9), pytest.raises(Exception):  # noqa: B017, PT011
        life.run(were, retries=0)
    for options in {}, adopted:
        with pytest.raises(LogMismatchError, match=r"Batch 2 has begun .* start once with these"):
            life.run(are, **options)
    life.run(were)
    life.run(are, **adopted)
    factory = state_from_url(f"sqlite:{life.folder}/c.db?prefix=count&kind=transactional")
    assert contents(factory) == {("a",): 2, ("b",): 2, ("c",): 2}


def test_streams_go_on_in_a_new_checkpoint_where_the_smallest_of_their_ids_leaves(
    life: Life,
) -> None:
    def counting(total: int, *streams: str) -> Declare:
        def declare(session: Any, folder: Path) -> TridentTopology:
            topology = TridentTopology()
            made = [
                topology.newStream(each, GeneratorSpout(FIELDS, lambda n: ("a", n, n), total=total))
                for each in streams
            ]
            stream = made[0] if len(made) == 1 else topology.merge(*made)
            grouped = stream.groupBy("word")
            grouped.persistentAggregate(f"sqlite:{folder}/count.db", Count(), "count")
            return topology

        return declare

    life.run(counting(3, "a", "b", "c"))
    with pytest.raises(CheckpointError, match=f"{ADOPT}: the group 'b' goes on") as raised:
        life.run(counting(5, "b", "c"))
    assert "away" not in str(raised.value)
    with pytest.raises(CheckpointError, match="let the same ones share batches"):
        life.run(both("n", more=("b", "c")))
    new = life.folder / "new"
    adopt = Adopt.from_checkpoint(life.checkpoint)
    life.run(counting(5, "b", "c"), checkpoint=new, adopt=adopt)
    assert value_of(life, "a") == 3 + 5 + 5
    with pytest.raises(AdoptionError, match=f"taken over by {new}"):
        life.run(counting(7, "b"), checkpoint=life.folder / "third", adopt=adopt)


def test_a_stream_that_comes_back_is_compared_with_what_it_was(life: Life) -> None:
    def shared(schema: str, *streams: str) -> Declare:
        def declare(session: Any, folder: Path) -> TridentTopology:
            topology = TridentTopology()
            made = [
                topology.newStream(each, FixedBatchSpout(schema if each == "two" else FIELDS, 1))
                for each in streams
            ]
            projected = [stream.project("word") for stream in made]
            grouped = topology.merge(*projected).groupBy("word")
            grouped.persistentAggregate(f"sqlite:{folder}/c.db", Count(), "count")
            return topology

        return declare

    life.run(shared(FIELDS, "one", "three", "two"))
    life.run(shared(FIELDS, "one", "three"))
    life.run(shared(FIELDS, "one", "three"))
    wider = shared(f"{FIELDS}, m long", "one", "three", "two")
    with pytest.raises(ChangedTopologyError, match=r"stream 'two' \(FixedBatchSpout of") as raised:
        life.run(wider)
    life.run(wider, accept_change=accepting(raised.value))
    life.run(wider)


def test_what_is_accepted_goes_on_over_what_is_there(life: Life) -> None:
    life.run(words(Count()))
    spout = FixedBatchSpout(FIELDS, 3, *ROWS, ["a", 5, 40])
    life.run(words(Sum(), spout=spout), accept_change={"count": SUMS})
    assert value_of(life, "a") == 1 + 5


def value_of(life: Life, word: str) -> Any:
    state: Any = state_from_url(f"sqlite:{life.folder}/count.db?prefix=count").makeState()
    try:
        return state.multiGet([(word,)])[0]
    finally:
        state.close()


def test_accepting_where_nothing_has_changed_does_nothing(life: Life) -> None:
    life.run(words())
    life.run(words(), accept_change={"count": SUMS})
    with pytest.raises(ChangedTopologyError):
        life.run(words(Max()), accept_change={"count": SUMS})


def test_a_log_of_an_older_version_has_it_all_from_then_on(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("trident.batch.opening.described_anew", lambda *given: {})
        life.run(words())
    life.run(words())
    with pytest.raises(ChangedTopologyError):
        life.run(words(Sum()))


@pytest.mark.parametrize("point", ["before begin", "after begin", "before commit"])
def test_a_change_is_noticed_wherever_the_batch_before_has_failed(life: Life, point: str) -> None:
    spout = FixedBatchSpout(FIELDS, 1, *ROWS)
    with fail_at(point, 2, times=9), pytest.raises(Exception):  # noqa: B017, PT011
        life.run(words(spout=spout), retries=0)
    with pytest.raises(ChangedTopologyError):
        life.run(words(Sum(), spout=spout))
    life.run(words(spout=spout))
    assert value_of(life, "b") == 1


def test_a_new_checkpoint_that_adopts_is_refused_before_the_old_one_is_closed(life: Life) -> None:
    life.run(words())
    new = life.folder / "new"
    with pytest.raises(ChangedTopologyError):
        life.run(words(Sum()), checkpoint=new, adopt=Adopt.from_checkpoint(life.checkpoint))
    life.run(words())
    accept = {"count": SUMS}
    life.run(
        words(Sum()),
        checkpoint=new,
        adopt=Adopt.from_checkpoint(life.checkpoint),
        accept_change=accept,
    )
    with pytest.raises(ChangedTopologyError):
        life.run(words(), checkpoint=new)


def test_a_new_checkpoint_that_adopts_takes_another_schema(life: Life) -> None:
    life.run(words())
    wider = words(spout=FixedBatchSpout(f"{FIELDS}, m long", 3))
    life.run(wider, checkpoint=life.folder / "new", adopt=Adopt.from_checkpoint(life.checkpoint))


def test_progress_is_not_adopted_for_another_class_of_spout(life: Life) -> None:
    def made(kind: type[GeneratorSpout]) -> Declare:
        return words(spout=kind(FIELDS, lambda n: (str(n), n, n), total=3))

    class Another(GeneratorSpout):
        pass

    life.run(made(GeneratorSpout))
    new = life.folder / "new"
    with pytest.raises(ChangedTopologyError, match=r"stream 'words' \(GeneratorSpout\)"):
        life.run(made(Another), checkpoint=new, adopt=Adopt.from_checkpoint(life.checkpoint))
    accept = {"words": "Another"}
    life.run(
        made(Another),
        checkpoint=new,
        adopt=Adopt.from_checkpoint(life.checkpoint),
        accept_change=accept,
    )


def test_a_source_is_read_anew_where_the_log_is_left_behind(life: Life) -> None:
    life.run(words())
    [log_id] = {re.search(r'"lineage":"(\w+)"', text)[1] for text in entries(life)}  # type: ignore[index]
    adopt = Adopt.from_states(log_id, in_flight="committed")
    spout = GeneratorSpout(FIELDS, lambda n: ("a", n, n), total=2)
    life.run(words(spout=spout), checkpoint=life.folder / "new", adopt=adopt)
    assert value_of(life, "a") == 1 + 2


def entries(life: Life) -> list[str]:
    return [path.read_text() for path in (life.checkpoint / "words").rglob("*.json")]


def test_a_state_that_was_renamed_is_named_with_the_new_one(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    life.run(words(name="count"))
    life.run(words(name="counts"))
    [warning] = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert warning == (
        "the state 'count' is no longer in the topology: it stays as it was after batch 1. "
        "New is 'counts': if that is it, declare it by StateSpec(…, renamed_from='count')"
    )
    caplog.clear()
    life.run(words(name="counts"))
    assert not [r for r in caplog.records if r.levelname == "WARNING"]


def test_a_renamed_state_goes_on_by_its_first_name_and_may_be_renamed_again(life: Life) -> None:
    for total, name in enumerate(["count", "counts", "words"], 1):
        spout = GeneratorSpout(FIELDS, lambda n: ("a", n, n), total=total)
        first = None if name == "count" else "count"
        store = "sqlite:{folder}/count.db"
        life.run(words(name=name, store=store, spout=spout, renamed_from=first))
        assert value_of(life, "a") == total
    renamed: Any = {"name": "words", "store": store, "renamed_from": "count", "spout": spout}
    with pytest.raises(ChangedTopologyError, match=r"state 'count' \(Count by"):
        life.run(words(Sum(), **renamed))
    (life.folder / "count.db").unlink()
    with pytest.raises(LostStateError, match=r"accept_loss={'count': 3}"):
        life.run(words(**renamed))


@pytest.mark.parametrize("point", ["before begin", "before commit"])
def test_a_state_is_renamed_while_a_batch_is_under_way(life: Life, point: str) -> None:
    store = "sqlite:{folder}/count.db"
    spout = FixedBatchSpout(FIELDS, 1, *ROWS)
    with fail_at(point, 2, times=9), pytest.raises(Exception):  # noqa: B017, PT011
        life.run(words(store=store, spout=spout), retries=0)
    life.run(words(name="counts", store=store, spout=spout, renamed_from="count"))
    assert [value_of(life, word) for word in "abc"] == [1, 1, 1]


def test_a_first_name_is_of_one_state() -> None:
    topology = TridentTopology()
    grouped = topology.newStream("words", FixedBatchSpout(FIELDS, 3, *ROWS)).groupBy("word")
    spec = StateSpec("memory:one", name="counts", renamed_from="count")
    grouped.persistentAggregate(spec, Count(), "n")
    with pytest.raises(DuplicateNameError, match="state 'counts', renamed from 'count'"):
        grouped.persistentAggregate("memory:two", Count(), "count")
    with pytest.raises(OperationTypeError, match="renamed_from= is the name that the state had"):
        grouped.persistentAggregate(StateSpec("memory:3", renamed_from=3), Count(), "m")  # type: ignore[arg-type]


def test_a_table_of_rows_is_renamed(life: Life) -> None:
    def renamed(session: Any, folder: Path) -> TridentTopology:
        topology = TridentTopology()
        rows = StateSpec(Rows(f"sqlite:{folder}/shop.db", "words", "word"), renamed_from="words")
        stream = topology.newStream("words", FixedBatchSpout(FIELDS, 3, *ROWS))
        stream.partitionPersist(rows, name="table")
        return topology

    life.run(tabled())
    life.run(renamed)
    assert '"kinds":{"words":"opaque"}' in entries(life)[-1]


def test_a_state_that_comes_back_changed_is_refused(life: Life) -> None:
    life.run(words(name="count"))
    life.run(words(name="counts"))
    with pytest.raises(ChangedTopologyError):
        life.run(words(Sum(), name="count"))


def test_a_transactional_state_is_refused_before_its_first_commit_too(life: Life) -> None:
    store = "sqlite:{folder}/{name}.db?kind=transactional"
    with fail_at("before commit", 1, times=9), pytest.raises(Exception):  # noqa: B017, PT011
        life.run(words(store=store), retries=0)
    with pytest.raises(ChangedTopologyError):
        life.run(words(Sum(), store=store))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (words(), words(Sum()), r"Count by word string.*Sum of n long by word string"),
        (
            words(window=TumblingCountWindow.of(5)),
            words(window=TumblingCountWindow.of(7)),
            r"tumbling, 5 tuples, kept as aggregates.*tumbling, 7 tuples.*Open windows can't go on",
        ),
    ],
)
def test_a_change_is_refused_on_both_engines(
    engine: Engine, before: Declare, after: Declare, found: str
) -> None:
    with engine.start(before(engine.spark, engine.folder), trigger="available") as run:
        run.awaitTermination(PATIENCE)
    with pytest.raises(ChangedTopologyError, match=found):
        engine.start(after(engine.spark, engine.folder))


def test_values_are_upgraded_on_both_engines(engine: Engine) -> None:
    for aggregator, rows in (Sum(), ROWS), (Pairs(), [*ROWS, ["a", 5, 40], ["d", 7, 50]]):
        declare = words(aggregator, spout=FixedBatchSpout(FIELDS, 3, *rows))
        with engine.start(declare(engine.spark, engine.folder), trigger="available") as run:
            run.awaitTermination(PATIENCE)
    factory = state_from_url(f"sqlite:{engine.folder}/count.db?prefix=count")
    assert contents(replace(factory, schema=ValueSchema(2, Pairs().upgrade))) == {
        ("a",): [6, 1],
        ("b",): [2, 0],
        ("c",): [3, 0],
        ("d",): [7, 1],
    }


def test_a_state_of_which_batches_are_staged_is_changed_when_they_are_committed(
    tmp_path: Path,
) -> None:
    area = StagingArea(Folder(tmp_path / "staged"))
    known = {"count": {"by": "Count", "of": {}, "key": {"word": "string"}, "value": "long"}}
    entry = LogEntry(3, "", "log", Token(2, 0), 1, topology={"states": known})
    forms = {"count": {**known["count"], "schema": 2}}
    area.stage(StagedFile("log", 3, "query", 1, "digest", None))
    check_none_staged(entry, area, forms)
    area.stage(StagedFile("log", 3, "query", 2, "digest", "digest"))
    check_none_staged(entry, area, known)
    for changed in forms, {"count": {**known["count"], "by": "Sum"}}:
        with pytest.raises(StagingError, match="batches 2 to 2 update the state 'count' as it was"):
            check_none_staged(entry, area, changed)


def test_a_query_reads_the_new_form_of_what_is_there(life: Life) -> None:
    life.run(words(Sum()))
    topology = words(Pairs())(None, life.folder)
    counts = topology.newStaticState(
        StateSpec(
            f"sqlite:{life.folder}/other.db?prefix=count",
            name="other",
            schema_version=2,
            upgrade=lambda value, version: [value, version],
        )
    )
    (life.folder / "other.db").write_bytes((life.folder / "count.db").read_bytes())
    topology.newDRPCStream("get").stateQuery(counts, "args", MapGet(), "n").project("n")
    with topology.start(checkpoint=life.checkpoint) as run:
        assert run.drpc.execute("get", "c", PATIENCE) == "[[[3,1]]]"


class Refused(Pairs):
    """Can't upgrade a value."""

    def upgrade(self, value: Any, version: int) -> list[int]:
        raise KeyError("odd")


def test_a_value_that_cannot_be_upgraded_and_no_batch_needs_stops_no_start(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    life.run(words(Sum()))
    rows = [*ROWS, *(["d", number, 40] for number in range(9))]
    for last in (6, 9, 12):
        spout = FixedBatchSpout(FIELDS, 3, *rows[:last])
        life.run(words(Refused(), spout=spout, expire_after=Duration.of(10**6)))
    assert "state count keeps what has expired: the value of the key ('a',)" in caplog.text


class Lasts(ReducerAggregator[list[int]]):
    """The numbers of a window; its tuples have got a second field in its second form."""

    def __init__(self, version: int) -> None:
        self.schema_version = version

    def init(self) -> list[int]:
        return []

    def reduce(self, curr: list[int], tuple: Any) -> list[int]:
        return [*curr, *tuple]

    def upgrade(self, value: Any, version: int) -> Any:
        return [*value, -1]


@pytest.mark.parametrize(
    ("window", "before", "after", "inputs", "found"),
    [
        (TumblingCountWindow.of(2), Sum(), Pairs(), "n", [("a", [6, 1])]),
        (
            SlidingCountWindow.of(2, 1),
            Lasts(1),
            Lasts(2),
            "n, at",
            [("a", [1, -1, 5, 40]), ("d", [0, 5000])],
        ),
        (tumbling(100), Sum(), Pairs(), "n", [("a", [6, 1]), ("b", [2, 0]), ("c", [3, 0])]),
        (
            SessionWindow.of(Duration.of(50)).withTimestampField("at"),
            Sum(),
            Pairs(),
            "n",
            [("a", [6, 1]), ("b", [2, 0]), ("c", [3, 0])],
        ),
    ],
    ids=["aggregates", "tuples", "times", "sessions"],
)
def test_what_is_in_open_windows_is_upgraded(
    life: Life, window: Any, before: Any, after: Any, inputs: str, found: list[Any]
) -> None:
    emitted: list[Any] = []

    def windowed(aggregator: Any, fields: str, *more: list[Any]) -> Declare:
        def declare(session: Any, folder: Path) -> TridentTopology:
            topology = TridentTopology()
            stream = topology.newStream("words", FixedBatchSpout(FIELDS, 3, *ROWS, *more))
            windows = stream.groupBy("word").window(
                window, f"sqlite:{folder}/w.db", fields, aggregator, "value"
            )
            windows.peek(lambda word, value, *times: emitted.append((word, value)))
            return topology

        return declare

    life.run(windowed(before, "n"))
    emitted.clear()
    life.run(windowed(after, inputs, ["a", 5, 40], ["d", 0, 5000]))
    assert sorted(emitted) == found


def test_windows_of_another_length_are_built_anew(life: Life) -> None:
    emitted: list[Any] = []

    def windowed(length: int, *more: list[Any]) -> Declare:
        def declare(session: Any, folder: Path) -> TridentTopology:
            topology = TridentTopology()
            stream = topology.newStream("words", FixedBatchSpout(FIELDS, 3, *ROWS, *more))
            window, place = TumblingCountWindow.of(length), f"sqlite:{folder}/w.db"
            windows = stream.groupBy("word").window(window, place, "n", Sum(), "sum", name="w")
            windows.peek(lambda word, value: emitted.append((word, value)))
            return topology

        return declare

    life.run(windowed(3))
    with pytest.raises(ChangedTopologyError, match="from history: python -m trident rebuild"):
        life.run(windowed(2))
    plan, [swaps] = plan_rebuild(windowed(2)(None, life.folder).plan(), {"w": "w_2"})
    life.checkpoint = life.folder / "new"
    options = StartOptions(checkpoint=life.checkpoint, trigger="available")
    with start(plan, None, options) as run:
        run.awaitTermination(PATIENCE)
    swap_states(swaps)
    life.run(windowed(2, ["a", 5, 40]))
    assert emitted == [("a", 6)]


def test_a_state_in_memory_is_upgraded_too() -> None:
    factory = MemoryMapState.Factory()
    for aggregator in Sum(), Pairs():
        topology = TridentTopology()
        grouped = topology.newStream("w", FixedBatchSpout("n long", 3, [5])).groupBy("n")
        counts = grouped.persistentAggregate(factory, "n", aggregator, "value")
        if aggregator.schema_version == 1:
            with topology.start(trigger="available") as run:
                run.awaitTermination(PATIENCE)
    assert contents(counts._node.state.factory) == {(5,): [5, 0]}


@pytest.mark.parametrize(
    ("spec", "aggregator", "problem"),
    [
        ({"schema_version": 2}, Sum(), "without an upgrade.. of earlier values, of.*the StateSpec"),
        ({"schema_version": 0}, Sum(), "schema_version is a whole number from 1, found.*0"),
        ({}, type("Silent", (Sum,), {"schema_version": 2})(), "of earlier values, of.*Silent"),
        ({"stateFactory": Rows("sqlite:a.db", "t", "k")}, Pairs(), "map states keep values"),
    ],
)
def test_a_version_without_an_upgrade_is_refused(spec: Any, aggregator: Any, problem: str) -> None:
    grouped = TridentTopology().newStream("w", FixedBatchSpout(FIELDS, 3, *ROWS)).groupBy("word")
    state = StateSpec(**{"stateFactory": "memory:one", **spec})
    with pytest.raises(PlanError, match=problem):
        grouped.persistentAggregate(state, "n", aggregator, "value")


def test_a_class_is_told_by_its_name_without_what_is_around_it() -> None:
    class Local(Count):
        pass

    assert identified(Local()) == "Local"


def test_an_identity_that_takes_arguments_is_refused_by_its_name() -> None:
    class Product(Sum):
        def identity(self, x: int) -> int:  # type: ignore[override]
            return x

    with pytest.raises(OperationTypeError, match=r"Product\.identity is a text, or a method witho"):
        identified(Product())


def test_an_identity_may_be_a_method() -> None:
    class Latest(Count):
        def identity(self) -> str:  # type: ignore[override]
            return "n=5"

    assert identified(Latest()) == "Latest(n=5)"
    assert identified(Told(2)) == "Told(parameter=2)"


def test_a_bolt_is_told_by_its_own_class(life: Life) -> None:
    from tests.transactional.test_bolts import Committer

    life.run(committed(Committer()))
    assert '"by":"BoltUpdater(Committer)"' in entries(life)[-1]


def test_the_description_is_short(life: Life) -> None:
    life.run(words())
    assert (
        '"topology":{"states":{"count":{"by":"Count","of":{},"key":{"word":"string"},"value":"long"}},'
        '"sources":{"words":"FixedBatchSpout"}}' in entries(life)[-1]
    )
