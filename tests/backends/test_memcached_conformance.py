"""Memcached passes the conformance suite, on one node and spread over two."""

from __future__ import annotations

from itertools import count
from uuid import uuid4

import pytest

from tests.servers.promised import Served
from trident.backends.memcached import MemcachedStore
from trident.states import Ability, IBackingMap
from trident.states.testing.suite import BackingMapConformance
from trident.states.urls import StateURL

_RUN = uuid4().hex
_NUMBERS = count()


class TestOneNode(BackingMapConformance):
    abilities = frozenset({Ability.ENTRY})
    most_nodes = 1
    nodes: list[str]

    @pytest.fixture(autouse=True)
    def servers(self, memcached_servers: Served) -> None:
        hosts = StateURL.parse(memcached_servers.url).hosts
        self.nodes = [f"{host}:{port}" for host, port in hosts][: self.most_nodes]

    def make_map(self) -> IBackingMap:
        return MemcachedStore(self.nodes, prefix=f"{_RUN} {next(_NUMBERS)}").open()


class TestTwoNodes(TestOneNode):
    most_nodes = 2
