"""Answers queries by a line of bolts, as Storm had it before Trident."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from trident.api.topology import TridentTopology
from trident.errors import PlanError
from trident.operations.interfaces import CustomStreamGrouping, FlatMapFunction
from trident.spouts.rich import DEFAULT_STREAM, OutputFieldsDeclarer
from trident.transactional.bolts import BaseBasicBolt
from trident.transactional.builder import Bolt, BoltDeclarer, Bolts
from trident.transactional.carried import unpack
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields, FieldsLike

_REQUESTS = "requests"


class ReturnResults(BaseBasicBolt):
    """Published as the bolt that returns the answers; here the builder does it, and this one only
    stands where a program has it: it hands on the tuples that it takes."""

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit(list(tuple[1:]))

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("id, result")


class LinearDRPCTopologyBuilder:
    """Builds a query of a line of bolts, each of which takes the tuples of the one before it.

    The first bolt takes ``[id of the request, arguments]``; the last one emits ``[id, result]``.
    A batch bolt is told the end of a request by ``finishBatch()``, after every tuple of it, and a
    basic bolt that has ``finishedId(id)`` by that.

    Parameters
    ----------
    function : str
        The function's name.

    Examples
    --------
    >>> class Exclaim(BaseBasicBolt):
    ...     def execute(self, tuple, collector):
    ...         collector.emit([tuple[1] + "!"])
    ...     def declareOutputFields(self, declarer):
    ...         declarer.declare("id, result")
    >>> builder = LinearDRPCTopologyBuilder("exclaim")
    >>> _ = builder.addBolt(Exclaim(), 3)
    >>> with builder.createLocalTopology().start() as run:
    ...     run.drpc.execute("exclaim", "hello")
    '[["hello!"]]'
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._bolts = Bolts(_REQUESTS, Fields("id", "args"))
        self._last = _REQUESTS

    def addBolt(self, bolt: Bolt, parallelism: int = 1) -> LinearDRPCDeclarer:
        """Add a bolt to the end; by default any of its tasks gets a tuple.

        Parameters
        ----------
        bolt : IBatchBolt or IBasicBolt
            The bolt; each request runs a copy.
        parallelism : int
            In how many tasks.
        """
        id = f"bolt {len(self._bolts.components)}"
        declarer = self._bolts.add("addBolt", id, bolt, parallelism, commits=False)
        before, self._last = self._last, id
        return LinearDRPCDeclarer(declarer, before)

    def createLocalTopology(self) -> TridentTopology:
        """Return a topology that answers the function."""
        return self.addTo(TridentTopology())

    def addTo(self, topology: TridentTopology) -> TridentTopology:
        """Add the query to a topology, and return it.

        Raises
        ------
        PlanError
            When there is no bolt, or the last one doesn't emit two fields.
        """
        last = self._bolts.components[self._last]
        fields = last.streams.get(DEFAULT_STREAM, Fields())
        if last.bolt is None or len(fields) != 2:
            what = f"{self._function}: the last bolt emits [id, result], found the fields"
            raise PlanError(what, str(fields) or "none")
        requests = topology.newDRPCStream(self._function)
        answers = self._bolts.compile(topology, requests)
        answers.flatMap(_Result(), "result")
        return topology


class LinearDRPCDeclarer:
    """Says which task of a bolt gets a tuple of the bolt before it: any, unless it is told.

    Each call takes the place of the one before.
    """

    def __init__(self, declarer: BoltDeclarer, before: str) -> None:
        self._declarer = declarer
        self._before = before
        self.shuffleGrouping()

    def shuffleGrouping(self) -> Self:
        """One task after the other."""
        return self._take_by(self._declarer.shuffleGrouping)

    def localOrShuffleGrouping(self) -> Self:
        """As `shuffleGrouping`."""
        return self._take_by(self._declarer.localOrShuffleGrouping)

    def noneGrouping(self) -> Self:
        """Any task: as `shuffleGrouping`."""
        return self._take_by(self._declarer.noneGrouping)

    def allGrouping(self) -> Self:
        """A copy for each task."""
        return self._take_by(self._declarer.allGrouping)

    def globalGrouping(self) -> Self:
        """All to one task."""
        return self._take_by(self._declarer.globalGrouping)

    def directGrouping(self) -> Self:
        """To the task that `emitDirect` names."""
        return self._take_by(self._declarer.directGrouping)

    def fieldsGrouping(self, fields: FieldsLike) -> Self:
        """Equal values to one task."""
        return self._take_by(self._declarer.fieldsGrouping, fields)

    def customGrouping(self, grouping: CustomStreamGrouping) -> Self:
        """As a grouping says."""
        return self._take_by(self._declarer.customGrouping, grouping)

    def _take_by(self, grouping: Callable[..., object], *arguments: Any) -> Self:
        self._declarer.forget()
        grouping(self._before, *arguments)
        return self


class _Result(FlatMapFunction):
    def execute(self, input: TridentTuple) -> Any:
        return [unpack(input[2])]
