"""Look-ups in a row: all states are asked before any is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

from trident.kernels.query_kernel import QueryKernel
from trident.kernels.task import Task
from trident.kernels.type_check import TypeCheckKernel
from trident.states.asking import wait_for
from trident.states.maps.stored_map import read_each
from trident.tuples.block import Block


@dataclass(frozen=True)
class QueryRow:
    """Queries of states that are handed to it with each block; none takes what another finds."""

    queries: tuple[QueryKernel, ...]
    checks: tuple[TypeCheckKernel | None, ...]

    def apply(self, views: Sequence[Any], block: Block, task: Task) -> Block:
        """Look each tuple up in the `views` of the states; a block without tuples asks nothing."""
        if len(self.queries) == 1:
            return self._check(0, self.queries[0].apply(views[0], block, task), task)
        if not block.length:
            return block
        [made] = self.apply_to_all(views, [block], task)
        if isinstance(made, Exception):
            raise made
        return made

    def apply_to_all(
        self, views: Sequence[Any], blocks: Sequence[Block], task: Task
    ) -> list[Block | Exception]:
        """Look up tuples of several requests in one call a state; give the block or error of
        each."""
        given = [[query.given(block) for block in blocks] for query in self.queries]
        asked = [list(chain.from_iterable(own)) for own in given]
        if len(asked) == 1:
            found = [self.queries[0].retrieve(views[0], asked[0], task)]
        else:
            found = read_each(views, partial(self._ask_all, asked, task))
        answers = [iter(each) for each in found]
        made: list[Block | Exception] = []
        for index, block in enumerate(blocks):
            result: Block | Exception = block
            for place, query in enumerate(self.queries):
                own = given[place][index]
                results = list(islice(answers[place], len(own)))
                if isinstance(result, Exception) or not own:
                    continue
                try:
                    result = self._check(place, query.emit(result, own, results, task), task)
                except Exception as error:
                    result = error
            made.append(result)
        return made

    def _ask_all(
        self, asked: Sequence[Sequence[Any]], task: Task, views: Sequence[Any]
    ) -> list[Sequence[Any]]:
        """What the states answer, for the tuples that each is asked for."""
        return wait_for(
            [
                query.ask(view, own, task)
                for query, view, own in zip(self.queries, views, asked, strict=True)
            ]
        )

    def _check(self, place: int, made: Block, task: Task) -> Block:
        check = self.checks[place]
        return check.apply(made, task) if check and made.length else made
