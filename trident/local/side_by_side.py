"""Several requests to one query, run side by side: a state is asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from trident.local.exchanges import Partitions
from trident.local.program_input import ProgramInput, Rows
from trident.local.stage_run import LookUps, StageRun
from trident.states.cut import BatchMovedOn
from trident.states.errors import UnavailableError
from trident.tuples.block import joined

R = TypeVar("R", covariant=True)


class Part(NamedTuple, Generic[R]):
    """A stage, or a part of it: reads the outputs of `parents`, fills `slot`, and empties
    `releases`."""

    slot: int
    parents: tuple[int, ...]
    run: R
    releases: tuple[int, ...]


AnyPart = Part[StageRun | LookUps]


class SideBySide:
    """Some requests on their way through the steps of a query, part by part.

    What fails for one request ends that one only. Making this runs the steps before the first
    look-up. Then :meth:`look_up` runs those that need the states, again whenever a batch has moved
    on meanwhile, and :meth:`rows` the others.
    """

    def __init__(self, parts: Sequence[AnyPart], slots: int, given: Sequence[ProgramInput]) -> None:
        asking = [index for index, part in enumerate(parts) if isinstance(part.run, LookUps)]
        first, end = (asking[0], asking[-1] + 1) if asking else (len(parts), len(parts))
        self._asking, self._ending = parts[first:end], parts[end:]
        self._given = given
        self._made: list[list[Any]] = [[None] * slots for _ in given]
        self._failed: dict[int, Exception] = {}
        for part in parts[:first]:
            self._run(part)
        self._begun, self._failed_before = self._made, self._failed

    def look_up(self, queried: Callable[[str], Any]) -> None:
        """Run the steps with look-ups, on these views; again if they were too old."""
        # Each call begins with what the first one began with.
        self._made = [list(made) for made in self._begun]
        self._failed = dict(self._failed_before)
        self._given = [each._replace(queried=queried) for each in self._given]
        for part in self._asking:
            if not isinstance(part.run, LookUps) or not self._ask(part, part.run):
                self._run(part)

    def rows(self, result: int, names: Sequence[str]) -> list[Rows | Exception]:
        """Run the other steps, and return the answer to each request, or what failed it."""
        for part in self._ending:
            self._run(part)

        def answer(index: int, blocks: Partitions) -> Rows | Exception:
            return self._failed.get(index) or list(joined(blocks).tuples(names))

        return [answer(index, made[result]) for index, made in enumerate(self._made)]

    def _run(self, part: AnyPart) -> None:
        """Run a part for each request that hasn't failed, one by one."""
        slot, parents, stage, releases = part
        for index, made in enumerate(self._made):
            if index in self._failed:
                continue
            try:
                made[slot] = stage.run([made[parent] for parent in parents], self._given[index])
            except BatchMovedOn:
                raise
            except Exception as error:
                self._failed[index] = error
            for each in releases:
                made[each] = None

    def _ask(self, part: AnyPart, asked: LookUps) -> bool:
        """Ask a state for all requests at once; return whether that succeeded."""
        [parent] = part.parents
        alive = [index for index in range(len(self._made)) if index not in self._failed]
        if not alive:
            return True
        partitions = []
        for partition in range(len(asked)):
            blocks = [self._made[index][parent][partition] for index in alive]
            try:
                partitions.append(asked.together(self._given[0], partition, blocks))
            except (BatchMovedOn, UnavailableError):
                raise
            except Exception:
                return False  # because of the tuples of some request, or an entry for them
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
