"""Several requests to one query, run side by side: a state is asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from trident.kernels.query_row import QueryRow
from trident.local.exchanges import Partitions
from trident.local.program_input import ProgramInput, Rows
from trident.states.cut import BatchMovedOn
from trident.states.errors import UnavailableError
from trident.tuples.block import Block, joined

ChainRun = Callable[[Sequence[Partitions], ProgramInput], Partitions]
"""Runs a chain of steps: from the output of the chains before it to its own."""


class LookUp(NamedTuple):
    """A query of a state, or of several in a row, which is a chain by itself.

    Parameters
    ----------
    states : sequence of Node
        The states.
    rows : sequence of QueryRow
        One for each partition.
    """

    states: Sequence[Any]
    rows: Sequence[QueryRow]

    def alone(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        """Ask for one request."""
        views, count = [*map(given.queried, self.states)], len(self.rows)
        return [
            row.apply(views, block, given.task(partition, count))
            for partition, (row, block) in enumerate(zip(self.rows, parents[0], strict=True))
        ]

    def together(
        self, given: ProgramInput, partition: int, blocks: Sequence[Block]
    ) -> list[Block | Exception]:
        """What the block of each request becomes in a partition, or what was raised for it."""
        views, task = [*map(given.queried, self.states)], given.task(partition, len(self.rows))
        return self.rows[partition].apply_to_all(views, blocks, task)


class Part(NamedTuple):
    """A look-up, or steps that run as one.

    Parameters
    ----------
    slot : int
        Where the tuples are put that it makes.
    parents : tuple of int
        The slots that it takes.
    run : callable or LookUp
        What it does.
    releases : tuple of int
        The slots that nothing reads after it.
    """

    slot: int
    parents: tuple[int, ...]
    run: ChainRun | LookUp
    releases: tuple[int, ...]


class SideBySide:
    """Some requests on their way through the steps of a query, part by part.

    What fails for one request ends that one only. The steps before the first look-up have run when
    this is made; then :meth:`look_up` runs those that need the states, as often as a batch that
    moves on makes that necessary, and :meth:`rows` the others.

    Parameters
    ----------
    parts : sequence of Part
        The query, compiled.
    slots : int
        How many slots its parts have.
    given : sequence of ProgramInput
        The requests.
    """

    def __init__(self, parts: Sequence[Part], slots: int, given: Sequence[ProgramInput]) -> None:
        asking = [index for index, part in enumerate(parts) if isinstance(part.run, LookUp)]
        first, end = (asking[0], asking[-1] + 1) if asking else (len(parts), len(parts))
        self._asking, self._ending = parts[first:end], parts[end:]
        self._given = given
        self._made: list[list[Any]] = [[None] * slots for _ in given]
        self._failed: dict[int, Exception] = {}
        for part in parts[:first]:
            self._run(part)
        self._begun, self._failed_before = self._made, self._failed

    def look_up(self, queried: Callable[[Any], Any]) -> None:
        """Run the steps from the first look-up to the last; may be called again with later views,
        also where a call has come to its end.

        Parameters
        ----------
        queried : callable
            From the node of a state to what queries of it read.

        Raises
        ------
        BatchMovedOn
            When the views are too old by now.
        UnavailableError
            When a store is away.
        """
        # From where the first call began: what one has made doesn't count once it is asked again.
        self._made = [list(made) for made in self._begun]
        self._failed = dict(self._failed_before)
        self._given = [each._replace(queried=queried) for each in self._given]
        for part in self._asking:
            if not isinstance(part.run, LookUp) or not self._ask(part, part.run):
                self._run(part)

    def rows(self, result: int, names: Sequence[str]) -> list[Rows | Exception]:
        """Run the other steps, and return the answer to each request, or what failed it."""
        for part in self._ending:
            self._run(part)

        def answer(index: int, blocks: Partitions) -> Rows | Exception:
            return self._failed.get(index) or list(joined(blocks).tuples(names))

        return [answer(index, made[result]) for index, made in enumerate(self._made)]

    def _run(self, part: Part) -> None:
        """Run a part for each request that hasn't failed, by itself."""
        slot, parents, each_run, releases = part
        run = each_run.alone if isinstance(each_run, LookUp) else each_run
        for index, made in enumerate(self._made):
            if index in self._failed:
                continue
            try:
                made[slot] = run([made[parent] for parent in parents], self._given[index])
            except BatchMovedOn:
                raise
            except Exception as error:
                self._failed[index] = error
            for each in releases:
                made[each] = None

    def _ask(self, part: Part, asked: LookUp) -> bool:
        """Ask a state for all requests at once; whether that went well."""
        [parent] = part.parents
        alive = [index for index in range(len(self._made)) if index not in self._failed]
        if not alive:
            return True
        partitions = []
        for partition in range(len(asked.rows)):
            blocks = [self._made[index][parent][partition] for index in alive]
            try:
                partitions.append(asked.together(self._given[0], partition, blocks))
            except (BatchMovedOn, UnavailableError):
                raise
            except Exception:
                return False  # the tuples of some request are to blame, or an entry of theirs
        for index, found in zip(alive, zip(*partitions, strict=True), strict=True):
            made = self._made[index]
            made[part.slot] = list(found)
            for error in [each for each in found if isinstance(each, Exception)]:
                if isinstance(error, BatchMovedOn):
                    raise error
                self._failed[index] = error
            for each in part.releases:
                made[each] = None
        return True
