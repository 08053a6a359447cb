"""``python -m trident rebuild``, and ``state swap``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from trident import Count, FeederBatchSpout, MapGet, Split, Sum, TextFileSpout
from trident import TridentTopology as Topology
from trident.api.run import Run
from trident.cli.main import main
from trident.errors import MovedStateError
from trident.spouts.feeder import FeedError
from trident.states.maps.moving import swap_states

FOLDER, AGAIN = "REBUILT_FOLDER", "REBUILT_AGAIN"
STATES = ["--state", "count", "--to", "count_2", "--state", "total", "--to", "total_2"]
Said = Callable[..., str]


def _declared(source: object) -> Topology:
    place = f"sqlite:{os.environ[FOLDER]}/states.db"
    topology = Topology()
    words = topology.newStream("lines", source).each("line", Split(), "word")
    counts = words.groupBy("word").persistentAggregate(place, Count(), "count")
    lengths = words.withColumn("length long", len, "word")
    lengths.persistentAggregate(place, "length", Sum(), "total")
    topology.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "n").project("n")
    return topology


def lines() -> Topology:
    return _declared(TextFileSpout(f"{os.environ[FOLDER]}/*.txt"))


def apart() -> Topology:
    """States of several stores, under prefixes that may have changed."""
    topology, folder, again = Topology(), os.environ[FOLDER], os.environ.get(AGAIN, "")
    words = topology.newStream("lines", TextFileSpout(f"{folder}/*.txt"))
    for name in "one", "two":
        place = f"sqlite:{folder}/{name}.db?prefix={name}{again}"
        words.persistentAggregate(place, Count(), name)
    return topology


def transactional() -> Topology:
    topology = Topology()
    place = f"sqlite:{os.environ[FOLDER]}/states.db?kind=transactional"
    words = topology.newStream("lines", TextFileSpout(f"{os.environ[FOLDER]}/*.txt"))
    words.each("line", Split(), "word").groupBy("word").persistentAggregate(place, Count(), "count")
    return topology


def groups() -> Topology:
    topology = lines()
    more = topology.newStream("more", TextFileSpout(f"{os.environ[FOLDER]}/*.txt"))
    more.persistentAggregate(f"sqlite:{os.environ[FOLDER]}/states.db", Count(), "read")
    return topology


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command, and return what it prints: its output, or the one line of its error."""

    def run(*words: str, status: int = 0) -> str:
        assert main(words) == status
        found = capsys.readouterr()
        return found.err if status else found.out

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "history.txt").write_text("dog cat\ndog\n")
    return tmp_path


@pytest.fixture
def fed(folder: Path) -> Iterator[FeederBatchSpout]:
    return FeederBatchSpout("line string")


@pytest.fixture
def live(folder: Path, fed: FeederBatchSpout) -> Iterator[Run]:
    """A run that has counted, wrongly."""
    with _declared(fed).start(checkpoint=folder / "old") as run:
        fed.feed([["dog"]])
        yield run


def rebuild(folder: Path, *more: str) -> list[str]:
    here = f"{__name__}:lines"
    return ["rebuild", here, *STATES, "--checkpoint", str(folder / "new"), *more]


def test_readers_and_servers_go_on_with_what_was_built_anew(
    folder: Path, live: Run, fed: FeederBatchSpout, said: Said
) -> None:
    with lines().serve(port=0) as server:

        def ask() -> str:
            return urlopen(f"{server.url}/drpc/count/dog").read().decode()

        state = f"sqlite:{folder}/states.db?prefix=count"
        assert (ask(), said("state", "get", state, "dog")) == ("[[1]]", "1\n")
        told = said(*rebuild(folder))
        assert told.splitlines()[-1].startswith("count_2 is count now, total_2 is total now. Start")
        assert (ask(), said("state", "get", state, "dog")) == ("[[2]]", "2\n")
        assert live.drpc.execute("count", "dog") == "[[2]]"
        with pytest.raises(FeedError):
            fed.feed([["dog"]])
        with pytest.raises(MovedStateError, match=r"'count_2'.*Stop this topology"):
            live.awaitTermination()
        assert said("state", "keys", state, "--values") == "cat\t1\ndog\t2\n"
        assert "replaced by the state with the prefix 'count_2'" in said("state", "info", state)


def test_the_topology_goes_on_with_the_checkpoint_of_the_rebuild(folder: Path, said: Said) -> None:
    run = ["run", f"{__name__}:lines", "--trigger", "available", "--checkpoint"]
    said(*run, str(folder / "old"))
    said(*rebuild(folder))
    (folder / "more.txt").write_text("dog\n")
    assert "batch 3, 1 tuples" in said(*run, str(folder / "new"))
    state = f"sqlite:{folder}/states.db?prefix="
    assert said("state", "get", f"{state}count", "dog") == "3\n"
    assert said("state", "get", f"{state}total") == "12\n"
    refused = said(*run, str(folder / "old"), status=1)
    assert "belongs to another checkpoint" in refused
    assert "It has the prefix 'count_2'" in refused
    assert "start with the checkpoint that has built it, and drop nothing with" in refused
    said("state", "drop", f"{state}count", "--yes")
    assert said("state", "get", f"{state}count", "dog") == "3\n"
    assert said(*rebuild(folder)).endswith("with another ends with an error.\n"), "once more"
    again = [word.replace("_2", "_3") for word in rebuild(folder)]
    said(*again[:-1], str(folder / "newest"))
    assert said("state", "get", f"{state}count", "dog") == "3\n"
    assert "belongs to another checkpoint" in said(*run, str(folder / "new"), status=1)


def test_it_may_be_built_first_and_swapped_later(folder: Path, said: Said) -> None:
    said("run", f"{__name__}:lines", "--trigger", "available", "--checkpoint", f"{folder}/old")
    (folder / "more.txt").write_text("dog\n")
    assert "nobody reads them yet" in said(*rebuild(folder, "--no-swap"))
    state = f"sqlite:{folder}/states.db?prefix="
    assert said("state", "get", f"{state}count", "dog") == "2\n"
    assert said("state", "get", f"{state}count_2", "dog") == "3\n"
    here = f"{__name__}:lines/"
    said("state", "swap", f"{here}count", "count_2", f"{state}total", "total_2")
    assert said("state", "get", f"{state}count", "dog") == "3\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--state", "count", "--to", "c"], "the same batches also update 'total'"),
        (["--state", "cuont", "--to", "c"], "Did you mean 'count'?"),
        (["--state", "count"], "the following arguments are required: --to"),
        ([*STATES, "--to", "x"], "each --state has one --to of its own"),
        ([*STATES[:-1], "count_2"], "each --state has one --to of its own"),
        (
            ["--state", "count", "--to", "count", *STATES[4:]],
            "already has the prefix 'count'",
        ),
        ([*STATES[:-1], "count"], "'count' belongs to another state of the topology: 'count'"),
        (
            [*STATES[:-1], "postgresql://me:s3cret@db/shop"],
            "by its prefix; found the URL 'postgresql://***@db/shop'. Readers find it",
        ),
        ([*STATES, "--from", "earliest"], "TextFileSpout doesn't begin at 'earliest'"),
        ([*STATES, "--checkpoint", ""], "rebuild without --checkpoint"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused(
    folder: Path, said: Said, words: list[str], problem: str
) -> None:
    command = ["rebuild", f"{__name__}:lines", "--checkpoint", f"{folder}/new", *words]
    if "required" in problem:
        with pytest.raises(SystemExit):
            main(command)
        return
    assert problem in said(*command, status=2)
    assert not (folder / "new").exists()


def test_states_of_several_stores_are_built_and_then_declared(
    folder: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"{__name__}:apart"
    run = ["run", here, "--trigger", "available", "--checkpoint"]
    said(*run, f"{folder}/old")
    anew = ["--state", "one", "--to", "one_2", "--state", "two", "--to", "two_2"]
    command = ["rebuild", here, *anew, "--checkpoint", f"{folder}/new"]
    assert "several stores can't move at once. Keep all" in said(*command, status=2)
    assert not (folder / "new").exists()
    said(*command, "--no-swap")
    monkeypatch.setenv(AGAIN, "_2")
    (folder / "more.txt").write_text("dog\n")
    assert "batch 3, 1 tuples" in said(*run, f"{folder}/new")
    for name in "one", "two":
        assert said("state", "get", f"sqlite:{folder}/{name}.db?prefix={name}_2") == "3\n"


def test_values_of_another_kind_are_refused_before_anything_is_built(
    folder: Path, said: Said
) -> None:
    said("run", f"{__name__}:lines", "--trigger", "available", "--checkpoint", f"{folder}/old")
    command = ["rebuild", f"{__name__}:transactional", *STATES[:4]]
    command += ["--checkpoint", f"{folder}/new"]
    told = said(*command, status=1)
    assert "it keeps opaque values, and was opened for transactional ones" in told
    assert "or give this state another name" in told
    assert not (folder / "new").exists()
    said(*command, "--no-swap")
    url = f"sqlite:{folder}/states.db?kind=transactional&prefix=count_2"
    assert said("state", "get", url, "dog") == "2\n"


def test_of_two_at_once_the_second_one_is_refused(
    folder: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    said("run", f"{__name__}:lines", "--trigger", "available", "--checkpoint", f"{folder}/old")
    third = [word.replace("_2", "_3") for word in rebuild(folder)]
    with monkeypatch.context() as patch:

        def swap(*given: Any) -> None:
            patch.undo()
            same = said(*rebuild(folder)[:-1], f"{folder}/other", status=1)
            assert "belongs to another checkpoint" in same
            said(*third[:-1], f"{folder}/third")
            swap_states(*given)

        patch.setattr("trident.cli.rebuild.swap_states", swap)
        told = said(*rebuild(folder), status=2)
    assert "'count_3' has replaced 'count' since the new state began to be built" in told
    (folder / "more.txt").write_text("dog\n")
    said("run", f"{__name__}:lines", "--trigger", "available", "--checkpoint", f"{folder}/third")
    assert said("state", "get", f"sqlite:{folder}/states.db?prefix=count", "dog") == "3\n"
    swap = ["state", "swap", f"{__name__}:lines/total", "count"]
    assert "belongs to another state of the topology: 'count'" in said(*swap, status=2)
    swap = ["state", "swap", f"sqlite:{folder}/states.db?prefix=total", "redis://h/0?prefix=x"]
    assert "found the URL 'redis://h/0?prefix=x'" in said(*swap, status=2)


def test_the_other_groups_of_a_topology_go_on_from_their_old_logs(folder: Path, said: Said) -> None:
    here = f"{__name__}:groups"
    run = ["run", here, "--trigger", "available", "--checkpoint"]
    said(*run, f"{folder}/old")
    said("rebuild", here, *STATES, "--checkpoint", f"{folder}/new")
    (folder / "more.txt").write_text("dog\n")
    assert "belongs to another checkpoint" in said(*run, f"{folder}/new", status=1)
    for _ in range(2):
        said(*run, f"{folder}/new", "--adopt-checkpoint", f"{folder}/old")
        state = f"sqlite:{folder}/states.db?prefix="
        assert said("state", "get", f"{state}count", "dog") == "3\n"
        assert said("state", "get", f"{state}read") == "3\n"


def test_a_state_that_is_not_there_is_missed_before_anything_is_built(
    folder: Path, said: Said
) -> None:
    assert "there is no state with the prefix 'count'" in said(*rebuild(folder), status=1)
    assert not (folder / "new").exists()
