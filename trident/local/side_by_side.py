"""Several requests to one query, run side by side: a state is asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from trident.local.exchanges import Partitions
from trident.local.program_input import ProgramInput, Rows
from trident.local.stage_run import LookUps, StageRun
from trident.states.cut import BatchMovedOn
from trident.states.errors import UnavailableError
from trident.tuples.block import joined


class Part(NamedTuple):
    """A look-up, or what a stage does between; reads `parents`, fills `slot`, empties
    `releases`."""

    slot: int
    parents: tuple[int, ...]
    run: StageRun | LookUps
    releases: tuple[int, ...]


class SideBySide:
    """Some requests on their way through the steps of a query, part by part.

    What fails for one request ends that one only. The steps before the first look-up have run when
    this is made; then :meth:`look_up` runs those that need the states, as often as a batch that
    moves on makes that necessary, and :meth:`rows` the others.
    """

    def __init__(self, parts: Sequence[Part], slots: int, given: Sequence[ProgramInput]) -> None:
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
        """Run the steps with look-ups, on these views; again where they were too old."""
        # From where the first call began: what one has made doesn't count once it is asked again.
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

    def _run(self, part: Part) -> None:
        """Run a part for each request that hasn't failed, by itself."""
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

    def _ask(self, part: Part, asked: LookUps) -> bool:
        """Ask a state for all requests at once; whether that went well."""
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
