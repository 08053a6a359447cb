"""State in a Redis Cluster: shards, each with its own control record."""

from __future__ import annotations

import re
from binascii import crc_hqx
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from redis import Redis

from tests.backends.redis_batches import add, committed, found, new_prefix, plain, record, written
from trident.backends.urls import state_from_url
from trident.states import MapStateFactory
from trident.states.control import Control
from trident.states.errors import CorruptStateError, StaleBatchError, StateUnavailableError
from trident.states.keys import CONTROL_KEY, encode_key
from trident.testing.servers.process import wait_until
from trident.testing.servers.promised import Served
from trident.testing.servers.redis import RedisCluster

WORDS = {f"word {number}": number + 1 for number in range(300)}


def opened(url: str, prefix: str, options: str = "") -> MapStateFactory:
    factory = state_from_url(f"{url}?prefix={prefix}{options}")
    assert isinstance(factory, MapStateFactory)
    return factory


@pytest.fixture
def prefix() -> str:
    return new_prefix()


@pytest.fixture
def counts(redis_cluster: Served, prefix: str) -> MapStateFactory:
    return opened(redis_cluster.url, prefix, "&partitions=16")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    """A cluster of its own, to be hurt."""
    with RedisCluster(tmp_path) as cluster:
        yield cluster


class Nodes:
    """Plain clients of a cluster's nodes: each key is asked for where it is."""

    def __init__(self, url: str) -> None:
        places = url.removeprefix("redis+cluster://").split(",")
        self.clients = [Redis.from_url(f"redis://{place}") for place in places]

    def keys(self, prefix: str) -> list[bytes]:
        pattern = f"{prefix}:*"
        return [key for client in self.clients for key in client.scan_iter(pattern, count=1000)]

    def of(self, key: bytes) -> Redis:
        """Return the client of the node that has a key."""
        [client] = [client for client in self.clients if key in client.keys("*")]
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()


@pytest.fixture
def nodes(redis_cluster: Served) -> Iterator[Nodes]:
    made = Nodes(redis_cluster.url)
    yield made
    made.close()


def control_key(prefix: str, shard: int) -> bytes:
    return b"%b:{p%d}:%b" % (prefix.encode(), shard, CONTROL_KEY)


def update(factory: MapStateFactory, txid: int, tasks: int) -> None:
    """Run a batch of all words as that many tasks, each with the shards it is given."""
    driver = factory.makeMap()
    driver.control.begin(record(txid))
    for task in range(tasks):
        own = {
            word: count
            for word, count in WORDS.items()
            if crc32(encode_key((word,))) % (factory.shards or 1) % tasks == task
        }
        add(factory.makeMap(), record(txid), **own)
    assert driver.control.announce(driver.control.ready(record(txid)))


class TestPartitions:
    def test_a_key_belongs_to_one_by_itself(
        self, counts: MapStateFactory, nodes: Nodes, prefix: str
    ) -> None:
        committed(counts, record(1), dog=2)
        key = b"%b:{p%d}:dog" % (prefix.encode(), crc32(b"dog") % 16)
        assert nodes.of(key).get(key) == b"[1,2,null]"

    def test_a_hash_for_each(self, redis_cluster: Served, nodes: Nodes, prefix: str) -> None:
        committed(opened(redis_cluster.url, prefix, "&partitions=16&layout=hash"), record(1), dog=2)
        name = b"%b:{p%d}" % (prefix.encode(), crc32(b"dog") % 16)
        assert nodes.of(name).hgetall(name) == {b"dog": b"[1,2,null]"}

    def test_all_nodes_have_some(self, counts: MapStateFactory, nodes: Nodes, prefix: str) -> None:
        committed(counts, record(1), **WORDS)
        assert all(list(client.scan_iter(f"{prefix}:*", count=1000)) for client in nodes.clients)

    def test_state_survives_another_number_of_tasks(self, counts: MapStateFactory) -> None:
        update(counts, 1, tasks=2)
        update(counts, 2, tasks=3)
        update(counts, 3, tasks=1)
        assert found(counts, *WORDS) == [count * 3 for count in WORDS.values()]

    def test_another_number_of_partitions_is_refused(
        self, redis_cluster: Served, counts: MapStateFactory, prefix: str
    ) -> None:
        committed(counts, record(1), dog=2)
        for partitions in (8, 32):
            other = opened(redis_cluster.url, prefix, f"&partitions={partitions}")
            with pytest.raises(CorruptStateError) as caught:
                committed(other, record(2), dog=2)
            assert f"in 16 shards, and opened for {partitions}" in str(caught.value)
            assert "partitions=16" in str(caught.value)
        assert found(counts, "dog") == [2]

    def test_entries_expire_and_records_do_not(
        self, redis_cluster: Served, nodes: Nodes, prefix: str
    ) -> None:
        committed(opened(redis_cluster.url, prefix, "&ttl=1000"), record(1), **WORDS)
        for key in nodes.keys(prefix):
            [ttl] = [
                client.ttl(key) for client in nodes.clients if key in client.keys(f"{prefix}*")
            ]
            assert (ttl == -1) == key.endswith(CONTROL_KEY)

    @pytest.mark.parametrize("layout", ["string", "hash"])
    def test_a_key_of_another_type_is_named_and_kept(
        self, redis_cluster: Served, nodes: Nodes, prefix: str, layout: str
    ) -> None:
        counts = opened(redis_cluster.url, prefix, f"&layout={layout}")
        committed(counts, record(1), **WORDS)
        shard = crc32(encode_key(("word 7",))) % 64
        key = b"%b:{p%d}" % (prefix.encode(), shard) + b":word 7" * (layout == "string")
        node = nodes.of(key)
        node.delete(key)
        node.rpush(key, "theirs")
        named = rf"{{p{shard}}}.* it is a list, and has to be a {layout}"
        with pytest.raises(CorruptStateError, match=named):
            committed(counts, record(2), **WORDS)
        assert node.lrange(key, 0, -1) == [b"theirs"]


class TestControlRecords:
    def test_each_partition_has_one(
        self, counts: MapStateFactory, nodes: Nodes, prefix: str
    ) -> None:
        written(counts, record(1), dog=2)
        stored = {key: nodes.of(key).get(key) for key in nodes.keys(prefix)}
        expected = b"16:" + record(1).encode()
        assert [stored[control_key(prefix, shard)] for shard in range(16)] == [expected] * 16

    def test_a_partition_that_was_left_behind_is_brought_along(
        self, counts: MapStateFactory, nodes: Nodes, prefix: str
    ) -> None:
        """A driver died while it announced."""
        committed(counts, record(1), dog=2)
        driver = written(counts, record(2), dog=2)
        key = control_key(prefix, 3)
        nodes.of(key).set(key, b"16:" + record(2).announced().encode())
        assert Control(driver.backing).read() == record(2)
        committed(counts, record(2, 1), dog=5)
        assert found(counts, "dog") == [7]

    def test_a_record_that_differs_in_one_partition_refuses_the_whole_write(
        self, counts: MapStateFactory, nodes: Nodes, prefix: str
    ) -> None:
        committed(counts, record(1), **WORDS)
        written(counts, record(2), dog=2)
        key = control_key(prefix, 15)
        nodes.of(key).set(key, b"16:" + record(2, 1).encode())
        before = found(counts, *WORDS)
        with pytest.raises(StaleBatchError):
            add(counts.makeMap(), record(2), **WORDS)
        assert found(counts, *WORDS) == before

    def test_a_partition_without_a_record_has_lost_its_data(
        self, counts: MapStateFactory, nodes: Nodes, prefix: str
    ) -> None:
        committed(counts, record(1), dog=2)
        key = control_key(prefix, 3)
        nodes.of(key).delete(key)
        with pytest.raises(CorruptStateError, match="lost what they held"):
            committed(counts, record(2), dog=2)

    def test_without_the_first_the_state_was_never_begun(
        self, counts: MapStateFactory, nodes: Nodes, prefix: str
    ) -> None:
        """A driver died while it began the first batch; the first shard comes last."""
        driver = written(counts, record(1), dog=2)
        key = control_key(prefix, 0)
        nodes.of(key).delete(key)
        assert Control(driver.backing).read() is None
        committed(counts, record(1, 1), dog=5)
        assert found(counts, "dog") == [5]


class TestChanges:
    def test_a_slot_that_moves_fails_the_attempt_and_is_found_again(
        self, cluster: RedisCluster
    ) -> None:
        counts = opened(cluster.url, "counts", "&partitions=4")
        committed(counts, record(1), **WORDS)
        driver = written(counts, record(2), **WORDS)
        task = counts.makeMap()
        task.beginCommit(record(2))
        task.multiGet([("dog",)])
        for shard in range(4):
            move(cluster, crc_hqx(b"p%d" % shard, 0) % 16384)
        with pytest.raises(StateUnavailableError, match="new map"):
            add(task, record(2), **WORDS)
        with pytest.raises(StateUnavailableError):
            driver.control.ready(record(2))
        committed(counts, record(2, 1), **WORDS)
        assert found(counts, *WORDS) == [count * 2 for count in WORDS.values()]

    def test_a_node_that_restarted_during_the_batch_fails_it(self, cluster: RedisCluster) -> None:
        counts = opened(cluster.url, "counts")
        committed(counts, record(1), **WORDS)
        driver = counts.makeMap()
        driver.control.begin(record(2))
        cluster.nodes[1].restart()
        for node in cluster.nodes:
            wait_until(lambda node=node: "cluster_state:ok" in node.cli("cluster", "info"))
        with pytest.raises(CorruptStateError, match="lost what they held"):
            driver.control.ready(record(2))

    def test_a_node_that_is_gone_is_named(self, cluster: RedisCluster) -> None:
        counts = opened(cluster.url, "counts")
        committed(counts, record(1), dog=1)
        gone = cluster.nodes[2]
        gone.kill()
        with pytest.raises(StateUnavailableError, match=f"redis at 127.0.0.1:{gone.port}"):
            committed(counts, record(2), dog=1)

    def test_any_node_tells_the_others(self, cluster: RedisCluster) -> None:
        third = cluster.nodes[2]
        committed(opened(cluster.url, "counts"), record(1), dog=1)
        seeds = f"redis+cluster://127.0.0.1:1,{third.host}:{third.port}"
        assert found(opened(seeds, "counts"), "dog") == [1]

    def test_no_seed_answers(self) -> None:
        with pytest.raises(StateUnavailableError) as caught:
            opened("redis+cluster://127.0.0.1:1,127.0.0.1:2", "counts").store.open().getControl()
        text = str(caught.value)
        assert "redis cluster at 127.0.0.1:1,127.0.0.1:2" in text
        assert "redis-server --port 1" in text


def move(cluster: RedisCluster, slot: int) -> None:
    """Move a slot, with its keys, to the next node."""
    ids = [node.cli("cluster", "myid") for node in cluster.nodes]
    [number] = [
        number
        for number, node in enumerate(cluster.nodes)
        if holds(node.cli("cluster", "nodes"), slot)
    ]
    source, target = cluster.nodes[number], cluster.nodes[(number + 1) % len(ids)]
    target_id = ids[(number + 1) % len(ids)]
    target.cli("cluster", "setslot", str(slot), "importing", ids[number])
    source.cli("cluster", "setslot", str(slot), "migrating", target_id)
    with plain(f"redis://{source.host}:{source.port}") as client:
        keys = client.execute_command("CLUSTER GETKEYSINSLOT", slot, 10_000)
        if keys:
            client.execute_command("MIGRATE", target.host, target.port, "", 0, 5000, "KEYS", *keys)
    for node in (target, source, *cluster.nodes):
        node.cli("cluster", "setslot", str(slot), "node", target_id)


def holds(nodes: str, slot: int) -> bool:
    """Tell from a node's own line whether it holds a slot."""
    [own] = [line for line in nodes.splitlines() if "myself" in line]
    ranges = re.finditer(r" (\d+)(?:-(\d+))?(?= |$)", own.split("connected", 1)[1])
    return any(int(each[1]) <= slot <= int(each[2] or each[1]) for each in ranges)
