"""Calls of one function that an event loop answers itself."""

from __future__ import annotations

import asyncio

from trident.drpc.calls import Answer
from trident.drpc.gathering import MOST_TOGETHER, Gathering


class LoopTicks:
    """Answers calls in the thread of one event loop.

    The first call that comes in a turn of the loop is answered at once. Those that come in the same
    turn are answered together in the next.
    """

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._begun = False
        self._waiting: list[tuple[str, asyncio.Future[Answer]]] = []

    async def answer(self, args: str) -> Answer:
        """The answer to a call, or what it failed with."""
        if not self._begun:
            self._begun = True
            asyncio.get_running_loop().call_soon(self._tick)
            [answer] = self._gathering.answer_here([args])
            return answer
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((args, future))
        return await future

    def _tick(self) -> None:
        calls, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        self._begun = bool(calls)
        if not calls:
            return
        asyncio.get_running_loop().call_soon(self._tick)
        answers = self._gathering.answer_here([args for args, _ in calls])
        for (_, future), answer in zip(calls, answers, strict=True):
            if not future.done():  # its task may have been cancelled
                future.set_result(answer)
