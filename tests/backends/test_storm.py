"""State that Storm left in Redis: refused, read, taken over, and given back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests.backends.redis_batches import committed, plain, record, written
from tests.states.abilities import PlainMap
from trident import Adopt, Count, FeederBatchSpout, MapGet, TridentTopology
from trident.backends.urls import state_from_url
from trident.errors import (
    CorruptStateError,
    GivenBackError,
    NoStateError,
    StaleBatchError,
    StateError,
    UnownedStateError,
)
from trident.log.errors import AdoptionError
from trident.states import ControlRecord, MapStateFactory, OpaqueMap, Token, give_back
from trident.states.asking import wait_for
from trident.states.keys import CONTROL_KEY
from trident.states.maps import storm
from trident.states.maps.reading import read_committed
from trident.states.maps.stored_map import read_each
from trident.states.testing.checks import following
from trident.testing.servers.promised import Served
from trident.testing.servers.redis import RedisServer

STORMS: dict[str, dict[str, Any]] = {
    "opaque": {"dog": "[1,1,null]", "cat": "[9,5,4]"},
    "transactional": {"dog": "[1,1]", "cat": "[9,5]"},
    "nontransactional": {"dog": "1", "cat": "5"},
}
KINDS = pytest.mark.parametrize("kind", STORMS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of its own, for states that leave keys as they are."""
    with RedisServer(tmp_path_factory.mktemp("storm")) as server:
        yield server


@pytest.fixture
def client(server: RedisServer) -> Iterator[Redis]:
    with plain(server.url) as client:
        client.flushall()
        yield client


def opened(server: Served, options: str) -> MapStateFactory:
    factory = state_from_url(f"{server.url}?{options}")
    assert isinstance(factory, MapStateFactory)
    return factory


def count(url: str, word: str, checkpoint: Path, *, grouped: bool = True, **options: Any) -> None:
    """Run a topology for one batch, of one word."""
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout)
    counted: Any = stream.groupBy("word") if grouped else stream
    counted.persistentAggregate(url, Count(), "count")
    with topology.start(checkpoint=checkpoint, **options):
        spout.feed([(word,)], 60)


def seen(url: str, *asked: str) -> list[Any]:
    """What another process finds."""
    state: Any = state_from_url(url).makeState()
    return list(state.multiGet([(word,) for word in asked]))


class TestBeforeATakeOver:
    @pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
    @KINDS
    def test_a_topology_does_not_start_on_it(
        self, server: RedisServer, client: Redis, kind: str, tmp_path: Path
    ) -> None:
        client.mset(STORMS[kind])
        url = f"{server.url}?prefix=&kind={kind}"
        with pytest.raises(
            UnownedStateError, match=r"the entry b'(dog|cat)'.*adopt=Adopt.from_storm"
        ):
            count(url, "dog", tmp_path)
        assert client.mget("dog", "cat") == [text.encode() for text in STORMS[kind].values()]
        count(url, "dog", tmp_path, adopt=Adopt.from_storm(9))
        assert seen(url, "dog", "cat") == [2, 5]

    @pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
    def test_a_kind_that_is_not_storms_may_be_corrected(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        client.mset(STORMS["transactional"])
        with pytest.raises(CorruptStateError, match="another kind of map"):
            count(f"{server.url}?prefix=", "dog", tmp_path, adopt=Adopt.from_storm(9))
        url = f"{server.url}?prefix=&kind=transactional"
        count(url, "dog", tmp_path)
        assert seen(url, "dog", "cat") == [2, 5]

    def test_where_nothing_is_a_reader_is_told_so(self, server: RedisServer, client: Redis) -> None:
        client.hset("storm", mapping=STORMS["opaque"])
        with pytest.raises(NoStateError, match="no state with the prefix 'storm'"):
            seen(f"{server.url}?prefix=storm&written_by=storm", "dog")

    @KINDS
    def test_it_is_read_when_asked_for_by_name(
        self, server: RedisServer, client: Redis, kind: str
    ) -> None:
        client.hset("trident:counts", mapping=STORMS[kind])
        url = f"{server.url}?prefix=trident:counts&layout=hash&kind={kind}"
        with pytest.raises(NoStateError, match="written_by=storm"):
            seen(url, "dog")
        assert seen(f"{url}&written_by=storm", "dog", "cat", "cow") == [1, 5, None]

    def test_a_topology_queries_it(self, server: RedisServer, client: Redis) -> None:
        client.mset(STORMS["opaque"])
        topology = TridentTopology()
        state = topology.newStaticState(f"{server.url}?prefix=&written_by=storm")
        topology.newDRPCStream("ask").stateQuery(state, "args", MapGet(), "n").project("n")
        with topology.start() as run:
            assert run.drpc.execute("ask", "cat") == "[[5]]"

    def test_what_is_read_as_storms_is_not_written(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        client.mset(STORMS["opaque"])
        url = f"{server.url}?prefix=&written_by=storm"
        for adopt in (None, Adopt.from_storm(9)):
            with pytest.raises(StateError, match=r"is for reading.*adopt=Adopt.from_storm"):
                count(url, "dog", tmp_path / str(adopt), adopt=adopt)
        assert sorted(client.keys()) == [b"cat", b"dog"]

    @pytest.mark.parametrize("kind", ["opaque", "transactional", "nontransactional"])
    def test_what_was_taken_over_is_not_read_as_storms(
        self, server: RedisServer, client: Redis, tmp_path: Path, kind: str
    ) -> None:
        client.mset(STORMS["opaque"])
        count(f"{server.url}?prefix=", "dog", tmp_path, adopt=Adopt.from_storm(9))
        state = state_from_url(f"{server.url}?prefix=&written_by=storm&kind={kind}").makeState()
        for _ in range(2):
            with pytest.raises(StateError, match="taken over from Storm.*without written_by=storm"):
                state.multiGet([("dog",)])
        state.close()

    def test_several_states_of_storms_are_read_and_refused_as_a_single_one(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        names = "one", "other"
        for name in names:
            client.mset({f"{name}:{key}": text for key, text in STORMS["opaque"].items()})
        states: list[Any] = [
            state_from_url(f"{server.url}?prefix={name}&written_by=storm").makeState()
            for name in names
        ]
        read = [(name, state) for name, state in zip(names, states, strict=True)]

        def ask(views: list[Any]) -> list[Any]:
            return wait_for([view.ask([("dog",)]) for view in views])

        alone = [state.multiGet([("dog",)]) for state in states]
        assert read_committed(read, ask) == alone
        assert read_each(states, ask) == alone
        for name in names:
            count(f"{server.url}?prefix={name}", "dog", tmp_path / name, adopt=Adopt.from_storm(9))
        with pytest.raises(StateError, match="taken over from Storm"):
            read_committed(read, ask)
        with pytest.raises(StateError, match="taken over from Storm"):
            read_each(states, ask)
        for state in states:
            state.close()


class TestASingleValue:
    @pytest.mark.parametrize(
        ("key", "option"),
        [
            pytest.param("$REDIS-MAP-STATE-GLOBAL", "", id="by default"),
            pytest.param("all", "&snapshot_key=all", id="by an option"),
        ],
    )
    def test_it_is_counted_on(
        self, server: RedisServer, client: Redis, tmp_path: Path, key: str, option: str
    ) -> None:
        client.set(key, "[9,5,4]")
        url = f"{server.url}?prefix={option}"
        count(url, "dog", tmp_path, grouped=False, adopt=Adopt.from_storm(9))
        assert client.get(key) == b"[10,6,5,1]"
        assert sorted(client.keys()) == sorted([CONTROL_KEY, key.encode()])

    def test_one_that_is_under_another_key_is_not_begun_from_nothing(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        client.set("all", "[9,5,4]")
        url = f"{server.url}?prefix="
        with pytest.raises(StateError, match=r"\$REDIS-MAP-STATE-GLOBAL.*b'all'.*snapshot_key="):
            count(url, "dog", tmp_path, grouped=False, adopt=Adopt.from_storm(9))
        assert client.keys() == [b"all"]
        count(f"{url}&snapshot_key=all", "dog", tmp_path, grouped=False, adopt=Adopt.from_storm(9))
        assert client.get("all") == b"[10,6,5,1]"

    def test_one_that_an_earlier_version_began_is_not_begun_from_nothing(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        count(f"{server.url}?snapshot_key=$GLOBAL$", "dog", tmp_path, grouped=False)
        with pytest.raises(StateError, match=r"under '\$GLOBAL\$'.*: snapshot_key=\$GLOBAL\$"):
            count(server.url, "dog", tmp_path, grouped=False)
        count(f"{server.url}?snapshot_key=$GLOBAL$", "dog", tmp_path, grouped=False)
        assert json.loads(client.get("count:$GLOBAL$"))[:3] == [2, 2, 1]

    def test_nor_is_it_where_a_loss_of_it_is_accepted(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        for _ in range(2):
            before = {key: client.get(key) for key in client.scan_iter()}
            count(f"{server.url}?snapshot_key=$GLOBAL$", "dog", tmp_path, grouped=False)
        client.mset(before)
        for accept_loss in ({"count": 2}, {}):
            with pytest.raises(StateError, match=r": snapshot_key=\$GLOBAL\$"):
                count(server.url, "dog", tmp_path, grouped=False, accept_loss=accept_loss)

    def test_nothing_where_storms_state_should_be_is_noticed(
        self, server: RedisServer, client: Redis, tmp_path: Path
    ) -> None:
        client.set("dog", "[9,5,4]")
        with pytest.raises(AdoptionError, match="no entries are in count"):
            count(server.url, "dog", tmp_path, adopt=Adopt.from_storm(9))


class TestNeighbours:
    def test_a_bare_state_passes_over_states_with_a_prefix(
        self, server: RedisServer, client: Redis
    ) -> None:
        committed(opened(server, "prefix=words"), record(1), dog=1)
        committed(opened(server, "prefix=a:b"), record(1), dog=1)
        committed(opened(server, "prefix=hashed&layout=hash"), record(1), dog=1)
        committed(opened(server, "prefix="), record(1), dog=3)
        assert client.get("dog") == b"[1,3,null]"

    @pytest.mark.parametrize("key", ["http://dog", "wor:dog", "words"])
    def test_a_bare_state_finds_keys_that_only_look_like_a_neighbours(
        self, server: RedisServer, client: Redis, key: str
    ) -> None:
        committed(opened(server, "prefix=words"), record(1), dog=1)
        client.set(key, "[1,1,null]")
        with pytest.raises(UnownedStateError, match=key):
            opened(server, "prefix=").makeMap().beginCommit(1)

    def test_an_entry_among_many_other_keys_is_found(
        self, server: RedisServer, client: Redis
    ) -> None:
        client.mset({f"other{number}": "1" for number in range(10_000)})
        client.set("words:dog", "[1,1,null]")
        assert opened(server, "prefix=words").store.open().occupant() == "the entry b'dog'"
        assert opened(server, "prefix=word").store.open().occupant() is None
        assert opened(server, "prefix=words&layout=hash").store.open().occupant() is None

    @pytest.mark.parametrize("first", ["a", "a:b"])
    @pytest.mark.parametrize("layout", ["string", "hash"])
    def test_prefixes_of_which_one_lies_in_the_other_do_not_meet(
        self, server: RedisServer, client: Redis, first: str, layout: str
    ) -> None:
        options = {"a": "prefix=a", "a:b": f"prefix=a:b&layout={layout}"}
        second = "a:b" if first == "a" else "a"
        committed(opened(server, options[first]), record(1), **{"c": 1})
        with pytest.raises(StateError, match="would share redis keys"):
            opened(server, options[second]).makeMap().beginCommit(1)

    def test_prefixes_with_a_colon_keep_apart(self, server: RedisServer, client: Redis) -> None:
        committed(opened(server, "prefix=a:b"), record(1), dog=1)
        committed(opened(server, "prefix=a:c"), record(1), dog=2)
        committed(opened(server, "prefix=a&layout=hash"), record(1), dog=3)
        assert client.mget("a:b:dog", "a:c:dog") == [b"[1,1,null]", b"[1,2,null]"]
        assert client.hget("a", "dog") == b"[1,3,null]"

    def test_a_mistyped_prefix_says_which_there_are(
        self, server: RedisServer, client: Redis
    ) -> None:
        committed(opened(server, "prefix=count"), record(1), dog=1)
        committed(opened(server, "prefix=hashed&layout=hash"), record(1), dog=1)
        for options, named in (("prefix=cuont", "the prefix 'cuont'"), ("", "the prefix 'state'")):
            with pytest.raises(NoStateError, match=f"{named}.*: 'count', 'hashed'. Give it"):
                seen(f"{server.url}?{options}", "dog")

    def test_a_state_that_began_and_has_not_committed_is_there(
        self, server: RedisServer, client: Redis
    ) -> None:
        written(opened(server, "prefix=count"), record(1), dog=1)
        assert seen(f"{server.url}?prefix=count", "dog") == [None]


def storm_reads(client: Redis, name: str) -> dict[str, Any]:
    """What Storm's serializer reads after its batch 17: the first three elements of an array."""
    found = {}
    for key, text in client.hgetall(name).items():
        txid, curr, _ = json.loads(text)[:3]
        assert txid <= 17, "Storm's state is ahead of Storm"
        found[key.decode()] = curr
    return found


class TestGivingBack:
    """Batches 18 to 20 are ours; what Storm reads afterwards is what they committed."""

    @pytest.fixture
    def counts(self, server: RedisServer, client: Redis) -> MapStateFactory:
        client.hset("storm", mapping={"old": "[17,5,4]", "dog": "[16,1,null]"})
        counts = opened(server, "prefix=storm&layout=hash")
        counts.makeMap().control.create(ControlRecord("log", Token(17, 0), 17))
        written(counts, record(18, 1), dog=10, gone=1)
        committed(counts, record(18, 2), dog=1)
        committed(counts, record(19, t18=2), dog=1, cat=1)
        written(counts, record(20, t18=2), dog=10, cat=10, cow=1)
        return counts

    def test_without_it_storm_would_count_what_failed(
        self, counts: MapStateFactory, client: Redis
    ) -> None:
        with pytest.raises(AssertionError, match="ahead of Storm"):
            storm_reads(client, "storm")
        assert json.loads(client.hget("storm", "gone"))[:3] == [18, 1, None]

    def test_only_what_was_committed_is_left(self, counts: MapStateFactory, client: Redis) -> None:
        assert give_back(counts.makeState(), 17, in_flight="burn") == 4
        assert storm_reads(client, "storm") == {"old": 5, "dog": 3, "cat": 1}
        assert client.hget("storm", "old") == b"[17,5,4]", "what Storm wrote is left alone"

    def test_a_batch_that_the_log_has_committed_counts(
        self, counts: MapStateFactory, client: Redis
    ) -> None:
        with pytest.raises(StateError, match="has not written everything"):
            give_back(counts.makeState(), 17, in_flight="committed")
        begun = record(20, t18=2)
        assert counts.store.open().putControl(begun.confirmed().encode(), begun.encode())
        give_back(counts.makeState(), 17, in_flight="committed")
        assert storm_reads(client, "storm") == {"old": 5, "dog": 13, "cat": 11, "cow": 1}

    def test_whether_the_last_batch_was_committed_has_to_be_said(
        self, counts: MapStateFactory, client: Redis
    ) -> None:
        before = client.hgetall("storm")
        with pytest.raises(StateError, match="attempt 0 of batch 20 has begun"):
            give_back(counts.makeState(), 17)
        assert client.hgetall("storm") == before

    def test_it_may_be_repeated(
        self, counts: MapStateFactory, client: Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as dying:
            dying.setattr(storm, "_AT_ONCE", 1)
            dying.setattr(storm, "_rewrite", partial(_once, storm._rewrite, [1]))
            with pytest.raises(ZeroDivisionError):
                give_back(counts.makeState(), 17, in_flight="burn")
        assert give_back(counts.makeState(), 17, in_flight="burn") == 3
        assert storm_reads(client, "storm") == {"old": 5, "dog": 3, "cat": 1}

    def test_a_run_that_is_still_alive_is_shut_out(self, counts: MapStateFactory) -> None:
        late = counts.makeMap()
        late.beginCommit(record(20, t18=2))
        late.multiPut([("dog",)], [99])
        give_back(counts.makeState(), 17, in_flight="burn")
        with pytest.raises(StaleBatchError):
            late.commit(record(20, t18=2))
        control, own = counts.makeMap().control, record(20, 2)
        with pytest.raises(GivenBackError):
            control.begin(own, following(control, own, Token(19, 0)))

    @pytest.mark.parametrize(
        "adopt",
        [
            None,
            Adopt.from_storm(40),
            Adopt.from_states("given-back-to-storm", in_flight="burn"),
        ],
    )
    def test_it_is_nobody_s_until_its_control_record_is_deleted(
        self, server: RedisServer, counts: MapStateFactory, tmp_path: Path, adopt: Any
    ) -> None:
        give_back(counts.makeState(), 17, in_flight="burn")
        url = f"{server.url}?prefix=storm&layout=hash"
        for use in (
            lambda: seen(url, "dog"),
            lambda: seen(f"{url}&written_by=storm", "dog"),
            lambda: count(url, "dog", tmp_path, adopt=adopt),
        ):
            with pytest.raises(GivenBackError, match=r"given back to Storm.* Delete"):
                use()

    def test_storm_goes_on_and_we_after_it(
        self, server: RedisServer, counts: MapStateFactory, client: Redis, tmp_path: Path
    ) -> None:
        give_back(counts.makeState(), 17, in_flight="burn")
        client.delete("storm\0trident.control")
        client.hset("storm", "dog", "[18,4,3]")  # one more, by Storm's batch 18
        url = f"{server.url}?prefix=storm&layout=hash"
        assert seen(f"{url}&written_by=storm", "dog", "cat") == [4, 1]
        count(url, "dog", tmp_path, adopt=Adopt.from_storm(18))
        assert seen(url, "dog", "cat", "old") == [5, 1, 5]

    @pytest.mark.parametrize(
        ("kind", "left"),
        [
            ("transactional", {b"dog": b"[17,2]", b"cat": b"[9,1]"}),
            ("nontransactional", {b"dog": b"2", b"cat": b"1"}),
        ],
    )
    def test_the_other_kinds_are_given_back_too(
        self, server: RedisServer, client: Redis, kind: str, left: dict[bytes, bytes]
    ) -> None:
        texts = {"transactional": ("[9,1]", "[9,1]"), "nontransactional": ("1", "1")}[kind]
        client.mset(dict(zip(["dog", "cat"], texts, strict=True)))
        counts = opened(server, f"prefix=&kind={kind}")
        counts.makeMap().control.create(ControlRecord("log", Token(17, 0), 17))
        committed(counts, record(18), dog=1)
        give_back(counts.makeState(), 17)
        assert {key: client.get(key) for key in left} == left

    def test_bare_keys_are_given_back_beside_their_neighbours(
        self, server: RedisServer, client: Redis
    ) -> None:
        committed(opened(server, "prefix=words"), record(20, 1), dog=1)
        bare = opened(server, "prefix=")
        committed(bare, record(20, 1), dog=1)
        assert give_back(bare.makeState(), 17) == 1
        assert client.mget("dog", "words:dog") == [b"[17,1,1]", b"[20,1,null,1]"]

    def test_a_store_that_lists_nothing_says_so(self) -> None:
        state = OpaqueMap(PlainMap())
        state.beginCommit(1)
        state.commit(1)
        with pytest.raises(StateError, match="its store lists no entries"):
            give_back(state, 17)


def _once(rewrite: Any, left: list[int], *arguments: Any) -> None:
    """Rewrite the first share, and die at the second."""
    if not left:
        raise ZeroDivisionError
    left.pop()
    rewrite(*arguments)
