"""Explanations are pinned, so that a change of any plan is seen.

After a change that is meant, write them anew: ``python -m tests.plan.test_explain``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.plan.declared import DECLARED, later_operations
from trident import Count, FixedBatchSpout
from trident.api.topology import TridentTopology
from trident.operations.callables import native
from trident.operations.vectorised import vectorised

SNAPSHOTS = Path(__file__).parent / "snapshots"


def shown(declare: Callable[[], TridentTopology]) -> dict[Path, str]:
    topology, name = declare(), declare.__name__
    return {
        SNAPSHOTS / f"{name}.txt": topology.explain() + "\n",
        SNAPSHOTS / f"{name}.mmd": topology.to_mermaid() + "\n",
    }


@pytest.mark.parametrize("declare", DECLARED)
def test_the_explanation_is_the_pinned_one(declare: Callable[[], TridentTopology]) -> None:
    if declare is later_operations:
        pytest.importorskip("pyarrow", reason="it has a step of Arrow batches")
    for path, text in shown(declare).items():
        assert text == path.read_text(), path.name


def test_an_explanation_is_the_same_every_time() -> None:
    assert len({declare().explain() for declare in DECLARED for _ in range(5)}) == len(DECLARED)


def test_a_cache_that_is_left_out_is_explained() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ("dog",)))
    state = "redis://one/0?cache_size=9"
    words.groupBy("word").persistentAggregate(state, Count(), "count")
    assert "no cache, though cache_size is given: several processes write" in topology.explain()


def test_a_state_is_explained_with_its_place_and_its_calls() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ("dog",)))
    state = "redis://me:s3cret@one/3"
    words.groupBy("word").persistentAggregate(state, Count(), "count")
    told = topology.explain()
    assert "kept in redis at one:6379, database 3, prefix count" in told
    asked = "3 for each task and 6 for the batch, on the driver"
    assert f"round trips to its store a batch: {asked}" in told
    assert "s3cret" not in told


def test_what_no_engine_can_run_is_explained_with_the_reason() -> None:
    topology = TridentTopology()
    lines = topology.newStream("lines", FixedBatchSpout("line string", 1))
    upper = lines.each("line", native("upper(line)"), "up string")
    upper.map(lambda line, up: (line, up), "line, up").shuffle().peek(print)
    told = topology.explain()
    assert "every batch runs on Spark: step 2 is Spark's own" in told
    assert re.search(r"  start refuses it: map at .* the type of field 'line'", told)
    assert "exchange shuffle, from stage 1" in told


def test_a_step_without_its_driver_is_explained_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology = TridentTopology()
    lines = topology.newStream("lines", FixedBatchSpout("line string", 1))
    lines.flatMap(vectorised(lambda batch: batch), "line string").peek(print)
    monkeypatch.setitem(sys.modules, "trident.kernels.arrow_kernel", None)
    told = topology.explain()
    assert re.search(r"  start refuses it: flatMap at .*: pyarrow is needed for", told)
    assert "   3  peek(print)" in told


def test_a_field_without_a_type_is_explained_as_what_spark_refuses() -> None:
    topology = TridentTopology()
    lines = topology.newStream("lines", FixedBatchSpout("line string", 1))
    lines.map(lambda line: line.upper(), "line").shuffle().peek(print)
    told = topology.explain()
    assert re.search(r"with a session start refuses it: map at .* the type of field 'line'", told)
    assert "exchange" not in told, "the job of this process is listed, which has one partition"


def test_the_stages_of_this_process_are_counted() -> None:
    topology = TridentTopology()
    lines = topology.newStream("lines", FixedBatchSpout("line string", 1))
    words = lines.shuffle()
    assert "it is 1 stage of 1 partition; these are the stages on Spark" in topology.explain()
    words.parallelismHint(3)
    assert "it is 2 stages of up to 3 partitions; these" in topology.explain()


def test_a_run_without_a_session_shows_the_stages_of_this_process() -> None:
    topology = TridentTopology()
    lines = topology.newStream("lines", FixedBatchSpout("line string", 1, ("a",)))
    lines.shuffle().peek(lambda line: None)
    assert "exchange shuffle, from stage 1" in topology.explain()
    with topology.start() as run, run.serve(port=0) as server:
        [plan] = json.load(urlopen(f"{server.url}/plan.json"))
        page = urlopen(f"{server.url}/").read().decode()
    assert [stage["exchange"] for stage in plan["groups"][0]["stages"]] == [""]
    assert "batches run in the driver&#x27;s process" in page


def test_no_name_ends_the_line_of_a_flowchart() -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 1, ("dog",))
    topology.newStream('a"\nclick n1 href "`x`', spout)
    (line,) = [line for line in topology.to_mermaid().splitlines() if "n1[" in line]
    assert line.count('"') == 2
    assert "`" not in line


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for declare in DECLARED:
        for path, text in shown(declare).items():
            path.write_text(text)
