"""Runs a batch of requests that update states: the steps of each, then one write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

from trident.batch.computed import BegunStates
from trident.batch.outcome import Counters, Outcome
from trident.batch.states import close_states
from trident.drpc.calls import Answer, Call
from trident.drpc.errors import DRPCInternalError, MalformedRequestError
from trident.drpc.query import answer_json, failure_of
from trident.errors import PlanError
from trident.job.job import Job
from trident.kernels.task import Task, step_name
from trident.local.program import Program
from trident.local.program_input import ProgramInput
from trident.operations.emitted import ListCollector
from trident.operations.kept_answers import KeptAnswer, KeptAnswers, digest
from trident.plan.nodes import StateNode
from trident.plan.plan import BatchGroup
from trident.states.control import ControlRecord
from trident.states.errors import (
    CorruptStateError,
    FailedException,
    SerializationError,
    StateError,
    UnavailableError,
)
from trident.states.maps.sweeping import ExpirySweep
from trident.states.state import State
from trident.tuples.block import Block

MOST_KEPT = 2**16
"""Characters of an answer that is kept: a key of a store holds some of them."""

_OF_ENTRIES = (CorruptStateError, SerializationError)


def blames_request(error: Exception) -> bool:
    """Whether an error is due to what a request holds or looks up: not to a store that is away, and
    not to the protocol of states."""
    if isinstance(error, StateError):
        return type(error) is StateError or isinstance(error, _OF_ENTRIES)
    return not isinstance(error, UnavailableError)


class RequestEngine:
    """Runs the requests of a batch one after the other; each sees the updates of those before it.

    Updates are kept in memory, and written after the last request. So a request that fails has
    changed nothing: those before it are run again, and make the batch with it.

    The steps of its job are prepared at once; the states are closed with the engine.
    """

    def __init__(self, group: BatchGroup, job: Job, states: Mapping[StateNode, State]) -> None:
        assert group.requests is not None
        assert group.answers is not None  # the builder has checked it
        kept_answers = states[group.answers]
        if not ExpirySweep.can_sweep(kept_answers):
            what = f"start: the store of the answers of {group.requests.function!r} lists its "
            what += "entries and removes them, found"
            advice = "Keep them in memory, SQLite, PostgreSQL, HBase, or Redis with a prefix."
            raise PlanError(what, group.answers.state.factory.label, (), advice)
        self.function = group.requests.function
        self.one_by_one = group.reads_own
        self._answers = group.answers
        self._kept_answers = kept_answers
        self._states = {node.state.name: state for node, state in states.items()}
        self._counters = Counters(states.values())
        self._program = Program(job)
        self._program.prepare()

    def run(self, record: ControlRecord, requests: Sequence[Call]) -> tuple[list[Answer], Outcome]:
        """Answer the requests of one attempt, or the first of them, and write what they update.

        Return the answer to each request, or its failure; a failed request changes nothing. The
        failed request may be the last one: those behind it are for the next batch.

        An error fails the attempt: a FailedException if a store is away, another one if the updates
        can't be written. Parts of them may be written then.
        """
        before, started = self._counters.counts(), perf_counter()
        state, updater = self._kept_answers, self._answers.updater
        assert isinstance(updater, KeptAnswers)
        state.beginCommit(record)
        ids = [each.request_id for each in requests if each.request_id is not None]
        known = updater.known(state, ids)
        failed: dict[int, Exception] = {}
        while True:
            attempt = _Attempt(self, record, known)
            answers = attempt.answer_all(requests, failed)
            if answers is not None:
                break
            # A failed request ends the batch if others before it succeeded. Otherwise every failure
            # would run those again.
            if len(failed) <= (last := max(failed)):
                requests = requests[: last + 1]
        computed = perf_counter()
        if attempt.kept:
            updater.updateState(state, attempt.kept, ListCollector("answers", 0))
        task = Task(record.token.txid, record, 0, 1)
        attempt.begun.commit()
        with task.at(step_name(self._answers)):
            state.commit(record)
        seconds = {"compute": computed - started, "write": perf_counter() - computed}
        counts = self._counters.since(before)
        counted = self._program.counted()
        reached = self._counters.reached(record.token)
        return answers, Outcome(len(answers), *counts, seconds, "local", counted, reached)

    def close(self) -> None:
        """Clean the operations up, and close the states."""
        try:
            self._program.close()
        finally:
            close_states(self._states.values())


class _Attempt:
    """Runs the requests of an attempt until one fails."""

    def __init__(
        self, engine: RequestEngine, record: ControlRecord, known: Mapping[str, KeptAnswer]
    ) -> None:
        self.begun = BegunStates(engine._program.job.updates, engine._states, record)
        self.kept: list[KeptAnswer] = []
        self._engine = engine
        self._record = record
        self._known = dict(known)

    def answer_all(
        self, requests: Sequence[Call], failed: dict[int, Exception]
    ) -> list[Answer] | None:
        """Return the answer to each request, or its known failure; None if another one fails.

        Its updates are to be forgotten then, with those of all others.
        """
        answers: list[Answer] = []
        for index, asked in enumerate(requests):
            if index not in failed:
                try:
                    answers.append(self._answer(asked))
                    continue
                except MalformedRequestError as error:  # before anything was run
                    failed[index] = error
                except Exception as error:
                    if not blames_request(error):
                        raise
                    failed[index] = failure_of(self._engine.function, asked.args, error)
                    return None
                except BaseException as error:  # such as SystemExit of a step
                    function, cause = self._engine.function, repr(error)
                    failed[index] = DRPCInternalError(function, asked.args, cause)
                    return None
            answers.append(failed[index])
        return answers

    def _answer(self, asked: Call) -> str:
        """Return the answer that is kept, or that of the steps."""
        args, id = asked.args, asked.request_id
        found = None if id is None else self._known.get(id)
        if found is not None:
            if found.asked != digest(args):
                problem = f"the request id {id!r} was given to other arguments before"
                raise MalformedRequestError(problem)
            return found.answer
        engine, record = self._engine, self._record
        sources, begun = {engine.function: Block({"args": [args]}, 1)}, self.begun
        given = ProgramInput(record.token.txid, record, sources, begun.queried, begun.begin)
        answer = answer_json(engine._program.run(given))
        if id is not None:
            if len(answer) > MOST_KEPT:
                what = f"the answer has {len(answer):,} characters, and {MOST_KEPT:,} are kept"
                raise FailedException(f"{what} at most; let the last step give less")
            kept = self._known[id] = KeptAnswer(id, digest(args), answer)
            self.kept.append(kept)
        return answer
