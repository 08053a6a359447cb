"""Keys under names of one's own."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from trident import Adopt, Count, FeederBatchSpout, MapGet, TridentTopology
from trident.backends import redis
from trident.backends.memory import MemoryMap
from trident.states import OpaqueMap
from trident.states.errors import StateError
from trident.states.maps.factory import MapStateFactory
from trident.states.table.named_keys import KeyFactory, NamedKeysMap
from trident.testing.servers.promised import Served


def slashed(key: tuple[str, ...]) -> str:
    return "/".join(key)


def put(key_factory: KeyFactory, *keys: tuple[object, ...]) -> OpaqueMap:
    state = OpaqueMap(NamedKeysMap(MemoryMap(uuid4().hex), key_factory))
    state.beginCommit(1)
    state.multiPut(keys, range(len(keys)))
    state.commit(1)
    return state


def test_a_key_is_found_by_its_fields_and_kept_under_its_name() -> None:
    state = put(slashed, ("dog", "brown"), ("cat", "grey"))
    assert state.multiGet([("cat", "grey"), ("dog", "brown"), ("dog", "grey")]) == [1, 0, None]
    assert sorted(key for key, _ in state.backing.entries()) == [b"cat/grey", b"dog/brown"]


def test_two_keys_of_one_name_are_an_error() -> None:
    with pytest.raises(StateError, match=r"\('a/b', 'c'\) and \('a', 'b/c'\) one name, 'a/b/c'"):
        put(slashed, ("a/b", "c"), ("a", "b/c"))


@pytest.mark.parametrize("name", ["", "\0trident.control", None, b"dog"])
def test_what_is_no_name_is_an_error(name: object) -> None:
    with pytest.raises(StateError, match="a name is text"):
        put(lambda key: name, ("dog", "brown"))  # type: ignore[arg-type, return-value]


def test_such_a_state_cannot_be_listed() -> None:
    with pytest.raises(StateError, match="names that key_factory= gives them"):
        list(put(slashed, ("dog", "brown")).getTuples())


def test_a_store_of_several_shards_takes_none() -> None:
    with pytest.raises(ValueError, match="several shards"):
        redis.opaque(cluster=[("localhost", 7000)], key_factory=slashed)


@pytest.mark.parametrize("layout", ["string", "hash"])
def test_what_storm_wrote_with_a_key_factory_is_gone_on_from(
    redis_server: Served, tmp_path: Path, layout: str
) -> None:
    import redis as driver

    prefix = uuid4().hex
    host, port = redis_server.url.removeprefix("redis://").split(":")
    with driver.Redis(host, int(port)) as client:
        if layout == "hash":
            client.hset(prefix, "dog/brown", "[7,2,1]")
        else:
            client.set(f"{prefix}:dog/brown", "[7,2,1]")
    factory: MapStateFactory = redis.opaque(
        host, int(port), prefix, layout=layout, key_factory=slashed
    )
    topology = TridentTopology()
    pets = FeederBatchSpout("kind string, colour string")
    counts = (
        topology.newStream("pets", pets)
        .groupBy("kind, colour")
        .persistentAggregate(factory, Count(), "count")
    )
    asked = topology.newDRPCStream("ask")
    asked = asked.each("args", lambda args: [args.split()], ["kind", "colour"])
    asked.stateQuery(counts, "kind, colour", MapGet(), "count").project("count")
    with topology.start(checkpoint=tmp_path, adopt=Adopt.from_storm(7)) as run:
        pets.feed([("dog", "brown"), ("cat", "grey")], 30)
        assert run.drpc.execute("ask", "dog brown") == "[[3]]"
        assert run.drpc.execute("ask", "cat grey") == "[[1]]"
