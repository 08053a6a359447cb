"""A topology takes the URL of a state wherever it takes a factory, and shows no secret of it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.topologies import Write, sentences, word_count
from trident.api.stream import Stream, TridentState
from trident.api.topology import TridentTopology
from trident.backends.state_spec import StateSpec
from trident.backends.state_url import StateURL
from trident.errors import PlanError, StateURLError
from trident.operations.builtin import Count, MapGet
from trident.spouts.fixed import FixedBatchSpout
from trident.states import MapStateFactory, StateFactory

Given = str | StateURL | StateSpec
Place = Callable[[TridentTopology, Stream, Given], TridentState]

PLACES: dict[str, Place] = {
    "persistentAggregate": lambda topology, stream, state: stream.persistentAggregate(
        state, Count(), "count"
    ),
    "partitionPersist": lambda topology, stream, state: stream.partitionPersist(
        state, "sentence", Write(), name="count"
    ),
    "grouped partitionPersist": lambda topology, stream, state: stream.groupBy(
        "id"
    ).partitionPersist(state, "sentence", Write(), name="count"),
    "newStaticState": lambda topology, stream, state: topology.newStaticState(state, name="count"),
}
FORMS: dict[str, Callable[[str], Given]] = {
    "text": str,
    "URL": StateURL.parse,
    "spec of a text": lambda text: StateSpec(text),
    "spec of a URL": lambda text: StateSpec(StateURL.parse(text)),
}


def factory_of(state: TridentState) -> StateFactory:
    return state._node.state.factory


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_url_makes_the_state_of_every_call(
    place: Place, form: Callable[[str], Given], tmp_path: Path
) -> None:
    topology = TridentTopology()
    state = place(topology, sentences(topology), form(f"sqlite://{tmp_path}/a.db?cache_size=5"))
    factory = factory_of(state)
    assert isinstance(factory, MapStateFactory)
    assert factory.identity == ("sqlite", str(tmp_path / "a.db"), "count")
    assert factory.cache_size == 5
    assert pickle.loads(pickle.dumps(factory)) == factory
    assert not list(tmp_path.iterdir())


def test_a_spec_keeps_its_name_and_partitions() -> None:
    topology = TridentTopology()
    state = word_count(sentences(topology), StateSpec("memory:spec", 3, "words"))
    assert state.name == "words"
    assert state._node.state.required_partitions == 3
    assert getattr(factory_of(state), "identity", None) == ("memory", "spec", "words")


def test_one_url_serves_states_of_different_names() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    for name in ("one", "other"):
        word_count(stream, "memory:shared", name=name)
    assert [node.state.name for node in topology._builder.plan().states] == ["one", "other"]


def test_a_topology_counts_into_a_url_and_another_reads_it() -> None:
    counting = TridentTopology()
    stream = counting.newStream("words", FixedBatchSpout("word", 1, ["cat"], ["cat"]))
    url = "memory:counted-by-url?prefix=words"
    stream.groupBy("word").persistentAggregate(url, Count(), "count")
    with counting.start() as run:
        run.processAllAvailable()
    reading = TridentTopology()
    known = reading.newStaticState(url)
    reading.newDRPCStream("ask").stateQuery(known, "args", MapGet(), "count").project("count")
    with reading.start() as run:
        assert run.drpc.execute("ask", "cat") == "[[2]]"


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [
        ("redis://127.0.0.9:1/0", "redis", "redis"),
        ("redis+cluster://127.0.0.9:1", "redis", "redis"),
        ("redis+sentinel://127.0.0.9:1/main/0", "redis", "redis"),
        ("memcached://127.0.0.9:1", "pymemcache", "memcached"),
        ("hbase://127.0.0.9:1/table/family", "happybase", "hbase"),
        ("postgresql://127.0.0.9:1/shop", "psycopg", "postgres"),
    ],
)
def test_a_missing_driver_surfaces_where_the_state_is_first_used(
    url: str, driver: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No other test goes to that address: what a process has connected to needs no import any more.
    monkeypatch.setitem(sys.modules, driver, None)
    topology = TridentTopology()
    state = factory_of(word_count(sentences(topology), url)).makeState()
    with pytest.raises(ImportError) as caught:
        state.beginCommit(1)
    assert f'pip install "trident-spark[{extra}]"' in str(caught.value)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("counts.db", "starts with a scheme, found 'counts.db'"),
        ("memory:?cach_size=1", "memory: unknown option 'cach_size'; .* mean 'cache_size'?"),
        ("sqlite:a.db?prefix=", "can't name a table"),
        (StateURL("redos"), "there are: hbase, .*Did you mean 'redis'.*trident-spark"),
    ],
)
def test_a_wrong_url_is_an_error_of_the_call_and_adds_nothing(
    place: Place, url: Given, text: str
) -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    before = topology._builder.plan().nodes
    with pytest.raises(PlanError, match=text) as caught:
        place(topology, stream, url)
    assert str(caught.value).startswith(("persistentAggregate: ", "partitionP", "newStaticState: "))
    assert isinstance(caught.value.__context__, StateURLError)
    assert topology._builder.plan().nodes == before
