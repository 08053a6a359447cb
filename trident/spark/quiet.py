"""Keeps Spark from logging, with long traces, the errors that this library raises anyway."""

from __future__ import annotations

import logging
import threading
from typing import Any

from pyspark.sql import SparkSession

from trident.spark.access import access_to
from trident.spark.session import LOG_FILE
from trident.spark.versions import logger_of_batches, loggers_of_errors

TASKS = (
    "Exception in task .*",
    r".*Lost task .*(trident-sealed:|: \[[A-Z_.]+\] |TaskKilled).*",
    r".*Task \d+ in stage \S+ failed \d+ times; aborting job",
)
"""What Spark logs when an operation failed in a task; lost executors are still logged."""

_OF_JVM = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.scheduler.DAGScheduler",
)


class Quiet:
    """While on, JVM and Python drop messages that match whole; a `local_session` logs to a file."""

    def __init__(self, session: SparkSession, *messages: str) -> None:
        self._filters: list[tuple[Any, Any]] = []
        self._loggers: list[logging.Logger] = []
        self._python = _OfThreads()
        self._changing = threading.Lock()
        if session.conf.get(LOG_FILE, None) is None:
            self._loggers = loggers_of_errors()
            self._filters = _filters(access_to(session).jvm, f"(?s)({'|'.join(messages)})")

    def __enter__(self) -> None:
        self.on()

    def __exit__(self, *_: object) -> None:
        self.off()

    def on(self) -> None:
        """Begin, also for what Python logs in the calling thread; may be repeated."""
        with self._changing:
            if not self._python.threads:
                for config, denied in self._filters:
                    config.addFilter(denied)
                for logger in self._loggers:
                    logger.addFilter(self._python)
            self._python.threads.add(threading.get_ident())

    def off(self) -> None:
        """End, unless it is on for another thread too; may be repeated."""
        self._end({threading.get_ident()})

    def close(self) -> None:
        """End for all threads."""
        self._end(set(self._python.threads))

    def _end(self, threads: set[int]) -> None:
        with self._changing:
            was_on = bool(self._python.threads)
            self._python.threads -= threads
            if was_on and not self._python.threads:
                for config, denied in self._filters:
                    config.removeFilter(denied)
                for logger in self._loggers:
                    logger.removeFilter(self._python)


class Without(logging.Filter):
    """Drops records of an exception of a class."""

    def __init__(self, kind: type[BaseException]) -> None:
        super().__init__()
        self._kind = kind

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], self._kind))


class _OfThreads(logging.Filter):
    """Drops what some threads log."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread not in self.threads


def _filters(jvm: Any, regex: str) -> list[tuple[Any, Any]]:
    """The configurations of the JVM's loggers, each with a filter; none unless it has Log4j 2."""
    if jvm is None:
        return []
    core = "org.apache.logging.log4j.core"
    context = getattr(jvm, "org.apache.logging.log4j.LogManager").getContext(False)
    if not context.getClass().getName().startswith(core):
        return []
    answers = getattr(jvm, f"{core}.Filter$Result")
    make = getattr(jvm, f"{core}.filter.RegexFilter").createFilter
    found = {}
    for name in (*_OF_JVM, logger_of_batches()):
        config = context.getConfiguration().getLoggerConfig(name)
        found[config.getName()] = config
    made = []
    for config in found.values():
        denied = make(regex, None, False, answers.DENY, answers.NEUTRAL)
        denied.start()
        made.append((config, denied))
    return made
