"""Redis passes the conformance suite in both layouts, with bare keys, and as a cluster."""

from __future__ import annotations

from itertools import count
from threading import Barrier, Thread

import pytest

from tests.servers.promised import Served
from trident.backends.urls import state_from_url
from trident.states import Ability, IBackingMap, MapStateFactory
from trident.states.testing.checks import record
from trident.states.testing.suite import BackingMapConformance

_NUMBERS = count()
_ABLE = frozenset({Ability.FENCED, Ability.ENTRY, Ability.REMOVE})


class RedisConformance(BackingMapConformance):
    """A server for all, a prefix for each map."""

    url: str
    options = ""

    def make_map(self) -> IBackingMap:
        prefix = f"conformance-{next(_NUMBERS)}"
        factory = state_from_url(f"{self.url}?prefix={prefix}{self.options}")
        assert isinstance(factory, MapStateFactory)
        return factory.store.open()


class TestRedisStrings(RedisConformance):
    abilities = _ABLE | {Ability.LIST}

    @pytest.fixture(autouse=True)
    def server(self, redis_server: Served) -> None:
        self.url = redis_server.url


class TestRedisHash(TestRedisStrings):
    options = "&layout=hash"


class TestRedisStringsThatExpire(TestRedisStrings):
    options = "&ttl=1000"


class TestRedisHashThatExpires(TestRedisStrings):
    options = "&ttl=1000&layout=hash"


class TestRedisClusterStrings(RedisConformance):
    abilities = _ABLE
    options = "&partitions=7"

    @pytest.fixture(autouse=True)
    def server(self, redis_cluster: Served) -> None:
        self.url = redis_cluster.url

    def test_of_many_who_replace_the_record_one_does(self, backing: IBackingMap) -> None:
        """Here all may lose, who then try again; and a record has to be one, to be compared."""
        first = record(1).encode()
        assert backing.putControl(first, None)
        maps = [self.reopen(backing) for _ in range(4)]
        gate, won = Barrier(len(maps)), []

        def replace(number: int) -> None:
            gate.wait()
            own = record(number + 2).encode()
            if maps[number].putControl(own, first):
                won.append(own)

        threads = [Thread(target=replace, args=[number]) for number in range(len(maps))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) <= 1, "two drivers have begun a batch on the same record"
        assert backing.putControl(record(9).encode(), backing.getControl())
        assert backing.getControl() == record(9).encode()


class TestRedisClusterHash(TestRedisClusterStrings):
    options = "&partitions=16&layout=hash"
