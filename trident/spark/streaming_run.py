"""Structured Streaming as the clock of a group: its ``foreachBatch`` runs the batches."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic, sleep
from typing import NoReturn, Self

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from trident.batch.computed import Computed, Postponed
from trident.batch.errors import BatchInterruptedError
from trident.batch.group_run import GroupRun
from trident.batch.lag import Lag
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.staged import StagedBatches
from trident.batch.start_options import Trigger
from trident.log.errors import CheckpointError, LogUnavailableError
from trident.log.folders import SPARKS_LOG, STAGED, Folder
from trident.log.staging import StagingArea
from trident.spark.checks import SparkGroup
from trident.spark.group_engine import SMALL, BatchInput, SparkGroupEngine
from trident.spark.quiet import Quiet, Without
from trident.spark.settings import set_up
from trident.spark.source_lag import lag_of
from trident.spark.stream_union import add_history, split_streams, unite_streams
from trident.spark.versions import progress_of
from trident.states.control import ControlRecord

_COMMIT_PATIENCE = 5.0
_NOTED = 1000
"""The most batches that may have a known tuple count before their progress arrives."""


class Parked(Exception):
    """Raised in ``foreachBatch`` so that Spark doesn't commit the batch; no failure by itself."""


_WITHOUT_PARKED = Without(Parked)  # it only ends a query


class StreamingRun(GroupRun):
    """A group whose batches Structured Streaming makes.

    The batch runs in the query's thread and is never interrupted: a stop waits for its end, and for
    the commit of all that is staged. A batch that Spark begins meanwhile waits until the query is
    stopped, and then raises `Parked`: if it returned, Spark's log would commit it.
    """

    def __init__(
        self,
        group: SparkGroup,
        engine: SparkGroupEngine,
        runner: BatchRunner,
        folder: Folder,
        trigger: Trigger = None,
        max_pending: int = 1,
    ) -> None:
        super().__init__(runner.group, runner.monitor)
        self._plan = group
        self._engine = engine
        self._runner = runner
        self._folder = folder.below(SPARKS_LOG)
        self._trigger = trigger
        area = StagingArea(folder.below(STAGED))
        self._staged = StagedBatches(area, engine, runner, max_pending, self._note_end)
        self._tuples: dict[int, int] = {}
        self._lag: Lag | None = None
        self._noting = threading.Lock()
        self._gate = threading.Lock()
        self._in_batch = False
        self._stopper: threading.Thread | None = None
        self._cause: BaseException | None = None
        self._set_up = False
        self._name = f"trident {self.group} {secrets.token_hex(4)}"
        ended = rf"Query \Q{self._name}\E .* terminated with error.*"
        session = group.group.sources[0].source.sparkSession
        self._quiet = Quiet(session, ended, "Failed to cancel job group .*")
        self._query: StreamingQuery | None = None
        self._started = threading.Event()

    def start(self) -> Self:
        logging.getLogger("py4j.clientserver").addFilter(_WITHOUT_PARKED)
        self._folder.make()
        writer = (
            unite_streams(self._plan)
            .writeStream.queryName(self._name)
            .option("checkpointLocation", self._folder.url)
            .outputMode(self._plan.group.output_mode)
            .foreachBatch(self._batch)
        )
        self._staged.open(self._passed())
        if self._trigger == "available":
            writer = writer.trigger(availableNow=True)
        elif self._trigger is not None:
            milliseconds = int(float(self._trigger) * 1000)
            writer = writer.trigger(processingTime=f"{milliseconds} milliseconds")
        try:
            self._query = writer.start()
        except BaseException:
            self._runner.stopping.set()
            self._staged.close()
            raise
        finally:
            self._started.set()
        self._quiet.on()
        threading.Thread(target=self._watch, name=f"trident-{self.group}", daemon=True).start()
        return self

    @property
    def lastProgress(self) -> BatchProgress | None:
        """The last finished batch; its number of tuples once Spark reports it."""
        self._tuples_of_last()
        return super().lastProgress

    @property
    def recentProgress(self) -> list[BatchProgress]:
        """The last 100 finished batches, the oldest first; see :attr:`lastProgress`."""
        with suppress(Exception):  # the session may have been stopped, and the JVM with it
            self._tuples_of_last()
        return super().recentProgress

    def lag(self) -> Lag | None:
        """How far the sources are behind, by what Spark has said last; see `lag_of`."""
        return self._lag if self.isActive else None

    def progressed(self, progress: BatchProgress) -> None:
        with self._noting:
            progress = replace(progress, tuples=self._tuples.get(progress.txid, 0))
            self._progress.append(progress)
        self.monitor.finished(progress)

    def _tuples_of_last(self) -> int | None:
        """Return how many tuples Spark's last batch held, and keep that with its progress."""
        if self._query is None or not self.isActive:  # once it has ended all is known
            return None
        found = progress_of(self._query)
        if found is None:
            return None
        self._lag = lag_of(found)
        tuples, txid = int(found["numInputRows"]), self._txid(found["batchId"])
        with self._noting:
            # Its progress may be here already, or come when it is committed.
            self._tuples[txid] = tuples
            self._tuples.pop(txid - _NOTED, None)
            for index, progress in enumerate(self._progress):
                if progress.txid == txid:
                    self._progress[index] = replace(progress, tuples=tuples)
                    self.monitor.corrected(self._progress[index], tuples - progress.tuples)
        return tuples

    def request_stop(self) -> None:
        self._runner.stopping.set()
        with self._gate:
            if not self._in_batch:
                self._stop_query()

    def processAllAvailable(self) -> None:
        """Wait until every source has nothing more; raise what the group failed with."""
        query = self._running_query()
        try:
            if self._trigger == "available":
                query.awaitTermination()
            else:
                query.processAllAvailable()
        except PySparkException:
            self._ended.wait()
        self._staged.wait()
        if self._cause is not None or not query.isActive:
            self._ended.wait()
        self._raise_failure()

    def _running_query(self) -> StreamingQuery:
        self._started.wait()
        assert self._query is not None
        return self._query

    # The batch, in the query's thread.

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        with self._gate:
            stopping = self._runner.stopping.is_set() or self._cause is not None
            self._in_batch = not stopping
        if stopping:
            self._park()
        try:
            self._run_batch(frame, batch_id)
        except BatchInterruptedError:
            self._park()  # asked for by stop(); the batch is kept
        except BaseException as error:
            self._cause = error
            self._park()
        with self._gate:
            self._in_batch = False
            if self._runner.stopping.is_set() or self._cause is not None:
                self._stop_query(batch_id)

    def _run_batch(self, frame: DataFrame, batch_id: int) -> None:
        runner = self._runner
        txid = self._txid(batch_id)
        if not self._set_up:
            before_it = partial(self._digest, batch_id - 1)
            runner.patience.do(partial(self._staged.check_before, txid, before_it), txid)
            set_up(frame.sparkSession, self._plan.partitions)
            self._set_up = True
        before = self._tuples_of_last()
        small = before is not None and before <= SMALL
        digest = runner.patience.do(partial(self._digest, batch_id), txid)
        query_id = str(self._running_query().id)

        if txid == 1:
            frame = add_history(self._plan, frame)

        def compute(record: ControlRecord) -> Computed | Postponed:
            frames = split_streams(self._plan, frame, small=small)
            return self._engine.compute_input(record, BatchInput(frames, small))

        self._staged.run(txid, digest, query_id, compute)

    def _note_end(self, progress: BatchProgress | None, failure: BaseException | None) -> None:
        """Note a staged batch that is committed, or could not be."""
        if progress is not None:
            self.progressed(progress)
        elif not isinstance(failure, BatchInterruptedError):
            self._cause = failure
            with self._gate:
                if not self._in_batch:
                    self._stop_query()

    def _digest(self, batch_id: int) -> str:
        """Return a digest of the offsets that Spark has logged for the batch; these are durable."""
        offsets = self._folder.below("offsets")
        logged = offsets.read(str(batch_id))
        if logged is None:
            raise CheckpointError(
                offsets.place,
                f"Spark makes its batch {batch_id}, and no file {batch_id} is there",
                "Something has removed it: find out what, and start again.",
            )
        return hashlib.sha256(logged).hexdigest()

    def _passed(self) -> int:
        """Return the last batch that Spark has committed; if none, the one before the first."""
        names = self._folder.below("commits").names()
        newest = max((int(name) for name in names if name.isdecimal()), default=-1)
        return self._txid(newest)

    def _txid(self, batch_id: int) -> int:
        """The number of one of Spark's batches in our log, whose first one Spark calls 0."""
        return batch_id + 1 + self._runner.ledger.entry.base

    # The end.

    def _park(self) -> NoReturn:
        """End the query without this batch; a return would commit it in Spark's log."""
        query = self._running_query()
        with self._gate:
            self._in_batch = False
            self._stop_query()
        while query.isActive:
            sleep(0.005)
        raise Parked(self.group)

    def _stop_query(self, finished: int | None = None) -> None:
        """Stop the query from another thread, as its own would wait for itself."""
        if self._stopper is None:
            self._stopper = threading.Thread(
                target=self._stop_after, args=(finished,), name=f"trident-stop-{self.group}"
            )
            self._stopper.start()

    def _stop_after(self, finished: int | None) -> None:
        if finished is not None:
            # Spark's commit of a finished batch only saves a replay, but Spark prints a stack trace
            # if it is interrupted.
            commits, patience = self._folder.below("commits"), monotonic() + _COMMIT_PATIENCE
            with suppress(LogUnavailableError):
                while commits.read(str(finished)) is None and monotonic() < patience:
                    sleep(0.005)
        with suppress(Exception):  # the session may have been stopped, and the query with it
            self._running_query().stop()

    def _watch(self) -> None:
        failure: BaseException | None = None
        try:
            self._running_query().awaitTermination()
        except Exception as error:
            failure = error
        self._staged.close()
        if self._cause is not None:
            failure = self._cause
        elif self._runner.stopping.is_set():
            failure = None
        try:
            with self._gate:  # or it may be there, and not started yet
                stopper = self._stopper
            if stopper is not None:
                stopper.join()
            self._tuples_of_last()
            self._engine.close()
            self._quiet.close()
        except Exception as error:  # the JVM may have ended
            failure = failure or error
        finally:
            self.ended(failure)
