"""HBase passes the conformance suite; each map has a column of its own in one table."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from tests.servers.promised import Served
from trident.backends.hbase import HBaseStore
from trident.states import Ability, IBackingMap
from trident.states.testing.suite import BackingMapConformance


class TestHBaseMap(BackingMapConformance):
    abilities = frozenset({Ability.VERSIONED})
    place: tuple[str, int]

    @pytest.fixture(autouse=True)
    def server(self, hbase_server: Served) -> None:
        [(host, port)] = re.findall(r"//(.+):(\d+)", hbase_server.url)
        self.place = host, int(port)

    def make_map(self) -> IBackingMap:
        prefix = uuid4().hex
        return HBaseStore(*self.place, table="conformance", prefix=prefix, timeout=60).open()
