"""A topology whose driver is killed and whose batches fail while others read what it counts.

Each batch counts as much for the keys ``a`` and ``b``, in the state ``one`` and in the state
``two``; how much is another number in each attempt. The state ``sizes`` keeps how much each batch
has counted. Run as ``python -m``: with ports, it is the driver, which is started anew whenever it
was killed; without, it is a process that only serves.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import trident
from tests.state_service.read_states import KEYS
from trident import Count, MapGet, Split, TridentTopology
from trident.batch.watchpoints import POINTS, watching
from trident.chaos.process import end_with_parent
from trident.errors import FailedException
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout
from trident.states import OpaqueMap, StateFactory
from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.values import Token
from trident.tuples.fields import Fields

LIVES = 4
"""How many drivers there are; the last one is not killed."""
BATCHES = 8
"""How many batches each of them may commit."""
_FAILURES = 2


class Growing(ITridentSpout):
    """Emits the keys as often as a number drawn anew for each attempt, up to a batch."""

    kind = "opaque"

    def __init__(self, last: int) -> None:
        self._until = _Until(last)

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return self._until

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return _Keys()

    def getOutputFields(self) -> Fields:
        return Fields.of("key string, batch long")


class _Until(BatchCoordinator):
    def __init__(self, last: int) -> None:
        self._last = last

    def isReady(self, txid: int) -> bool:
        return txid <= self._last


class _Keys(Emitter):
    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        for _ in range(random.randint(1, 99)):
            for key in KEYS:
                collector.emit([key, token.txid])
        return token.txid


class FailingMap(WrappedMap):
    """Fails some writes, before they are done or after."""

    left = _FAILURES

    def _failing(self) -> bool:
        fails = FailingMap.left > 0 and random.random() < 0.3
        FailingMap.left -= fails
        return fails

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        if self._failing():
            raise FailedException("nothing was written")
        written = self.inner.multiPutFenced(keys, values, fence)
        if self._failing():
            raise FailedException("all was written")
        return written

    def multiAddFenced(self, keys: Any, *more: Any) -> bool:
        if self._failing():
            raise FailedException("nothing was added")
        added = self.inner.multiAddFenced(keys, *more)
        if self._failing():
            raise FailedException("all was added")
        return added


def state(url: str, name: str) -> StateFactory:
    """The state of that name, where a URL with ``NAME`` says."""
    kept: Any = trident.backends.state_from_url(url.replace("NAME", name))

    def opened() -> IBackingMap:
        return FailingMap(kept.store.open())

    return OpaqueMap.factory(opened, hosted="driver", name=name) if name == "two" else kept


def topology(url: str, last: int = 0) -> TridentTopology:
    """The topology; its query ``both`` answers with each key, and its value in both states."""
    made = TridentTopology()
    grown = made.newStream("grown", Growing(last))
    by_key = grown.groupBy("key")
    one = by_key.persistentAggregate(state(url, "one"), Count(), "n", name="one")
    two = by_key.persistentAggregate(state(url, "two"), Count(), "n", name="two")
    grown.groupBy("batch").persistentAggregate(state(url, "sizes"), Count(), "n", name="sizes")
    (
        made.newDRPCStream("both")
        .each("args", Split(), "key")
        .stateQuery(one, "key", MapGet(), "one")
        .stateQuery(two, "key", MapGet(), "two")
        .project("one, two")
    )
    return made


def drive(number: int, url: str, checkpoint: str, ports: Mapping[str, int]) -> None:
    """Count, and answer meanwhile; all but the last driver are killed somewhere."""
    random.seed(number)
    where, left = random.choice(POINTS), random.randint(1, BATCHES - 1)

    def watch(point: str, token: Token) -> None:
        nonlocal left
        left -= point == where
        if left < 0 and number < LIVES:
            os.kill(os.getpid(), signal.SIGKILL)

    last = number * BATCHES
    made = topology(url, last)
    with watching(watch), made.start(checkpoint=checkpoint, retries=100) as run:
        run.serve(**ports)
        run.processAllAvailable()


def main(url: str, checkpoint: str, *ports: str) -> None:
    if not ports:
        with topology(url).serve(port=0, thrift_port=0) as server:
            print(server.port, server.thrift_port, flush=True)
            sys.stdin.read()
        return
    given = dict(zip(("port", "thrift_port"), map(int, ports), strict=True))
    for number in range(1, LIVES + 1):
        if (child := os.fork()) == 0:
            end_with_parent()
            drive(number, url, checkpoint, given)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL), status
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
