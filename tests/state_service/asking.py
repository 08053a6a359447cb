"""What the tests of the state service ask, without a connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from threading import Event
from typing import Any
from uuid import uuid4

from tests.drpc.asking import PATIENCE
from tests.server.asking_app import Answer, answer_of
from trident import Count, FixedBatchSpout, MapGet, MemoryMapState, Sum, TridentTopology
from trident.backends.memory import MemoryMap
from trident.server.access import Access
from trident.server.limits import DRPCLimits
from trident.server.serving import Serving
from trident.states import OpaqueMap
from trident.states.state import State, StateFactory

SOLD = [("cat", 2), ("dog", 5), ("cat", 1)]


def sales() -> TridentTopology:
    """Two states of one group: how often each animal was sold, and how many in all."""
    topology = TridentTopology()
    sold = topology.newStream("sold", FixedBatchSpout("animal string, n long", 1, *SOLD))
    counts = sold.groupBy("animal").persistentAggregate(
        MemoryMapState.Factory(), Count(), "times", name="counts"
    )
    sold.persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "total", name="total")
    (topology.newDRPCStream("times").stateQuery(counts, "args", MapGet(), "times").project("times"))
    return topology


def entries(
    values: Mapping[Any, Any] | Sequence[tuple[Any, Any]], factory: StateFactory | None = None
) -> StateFactory:
    """A state with these values, committed; a key that is no tuple is one of one field."""
    pairs = list(values.items()) if isinstance(values, Mapping) else values
    factory = factory or MemoryMapState.Factory()
    keys = [key if isinstance(key, tuple) else (key,) for key, _ in pairs]
    state: Any = factory.makeState({}, None, 0, 1)
    with closing(state):
        state.beginCommit(1)
        state.multiPut(keys, [value for _, value in pairs])
        state.commit(1)
    return factory


def static(**states: StateFactory) -> TridentTopology:
    """A topology that only has states, and reads them."""
    topology = TridentTopology()
    for name, factory in states.items():
        topology.newStaticState(factory, name=name)
    return topology


class HeldMap(MemoryMap):
    """Notes which keys each look-up has; those for the key ``held`` wait."""

    def __init__(self) -> None:
        super().__init__(uuid4().hex)
        self.asked: list[Sequence[bytes]] = []
        self.begun = Event()
        self.go_on = Event()

    def multiGet(self, keys: Sequence[bytes]) -> Sequence[Any]:
        self.asked.append(keys)
        if b"held" in keys:
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        return super().multiGet(keys)


class Alerts(State):
    """A state of the user's own."""

    def beginCommit(self, batch: Any) -> None: ...
    def commit(self, batch: Any) -> None: ...


class AlertFactory(StateFactory):
    def makeState(
        self, conf: Any = None, metrics: Any = None, partitionIndex: int = 0, numPartitions: int = 1
    ) -> State:
        return Alerts()


def over(held: MemoryMap) -> StateFactory:
    """The factory of states over one map."""
    return OpaqueMap.factory(lambda: held, hosted="driver")


def serving(
    *served: Any, access: Access | None = None, limits: DRPCLimits | None = None
) -> Serving:
    return Serving(list(served), access or Access(), limits or DRPCLimits())


async def response_to(
    serving: Serving, method: str, target: str, body: bytes = b"", **headers: str
) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await answer_of(serving.routes, method, target, body, named)


def asked(serving: Serving, method: str, target: str, body: Any = b"", **headers: str) -> Answer:
    """The response to a request, whose body is bytes or what JSON is made of."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return asyncio.run(response_to(serving, method, target, data, **headers))


def told(response: Answer) -> tuple[int, Any]:
    return response.status, json.loads(response.body)


def header(response: Answer, name: str) -> str | None:
    return response.header(name)
