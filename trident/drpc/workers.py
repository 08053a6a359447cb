"""Threads that answer calls nobody else does."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

Job = Callable[[], None]


class Workers:
    """As many threads as there are jobs at one time; idle ones are kept for the next job.

    A job never raises. The threads don't keep the process alive: what they do changes nothing.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0
        self._threads = 0

    def start(self, job: Job) -> None:
        """Run a job, soon.

        Raises RuntimeError where the system has no more threads; nothing will run the job.
        """
        with self._lock:
            idle = self._idle > 0
            if idle:
                self._idle -= 1
            else:
                self._threads += 1
        if not idle:
            try:
                Thread(target=self._work, name="trident-drpc", daemon=True).start()
            except RuntimeError:
                with self._lock:
                    self._threads -= 1
                raise
        self._jobs.put(job)

    def close(self) -> None:
        """End the threads, each after the job that it runs."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._idle += 1
        with self._lock:
            self._threads -= 1
