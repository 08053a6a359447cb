"""Programs that tests kill, forked from a process that has loaded what they import.

Run as ``python -m`` it is that process. A new interpreter needs half a second to load the library,
a fork some milliseconds. A fork is a process of its own, and no program before it has used its
modules. Pytest itself is not forked: its threads may hold locks.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from trident.chaos.process import end_with_parent

LOADED = [
    "trident.api.run",
    "trident.backends.redis",
    "trident.backends.rows.mysql",
    "trident.backends.rows.copying",
    "trident.backends.rows.merge_into",
    "trident.backends.rows.postgresql",
    "trident.backends.rows.sqlite",
    "trident.backends.sqlite",
    "trident.chaos.tables",
    "trident.drpc.service",
    "trident.local.local_engine",
    "trident.spark.session",
    "trident.spark.spark_engine",
    "trident.spark.streaming_run",
    "trident.spouts.kafka",
    "trident.storm",
    "confluent_kafka",
    "psycopg",
    "pymysql",
    "redis",
    "pyarrow.compute",
    "sqlalchemy.dialects.mysql.pymysql",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
]
"""What programs import, where it can be; no module of the tests: that is run anew."""


class Ended(NamedTuple):
    """How a program has ended: its return code, negative for a signal, and what it has printed."""

    code: int
    printed: str


class Forks:
    """The process that programs are forked from, one after the other."""

    def __init__(self) -> None:
        # Unbuffered: two answers at once would be read as one, and the second waited for.
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        atexit.register(self._process.communicate)

    def run(self, module: str, arguments: list[str], timeout: float, **more: Any) -> Ended:
        """Run a module as ``python -m`` does; kill it where it takes longer than `timeout`."""
        assert self._process.stdin is not None
        with tempfile.NamedTemporaryFile("r") as output:
            asked = {"module": module, "arguments": arguments, "output": output.name, **more}
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            pid = self._answer(60)
            try:
                code = self._answer(timeout)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._answer(60)
                raise
            return Ended(code, output.read())

    def _answer(self, timeout: float) -> int:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        if not ready:
            raise TimeoutError(f"a program has not ended within {timeout} s")
        return int(self._process.stdout.readline())


@cache
def _forks() -> Forks:
    return Forks()


def run(
    program: ModuleType,
    *arguments: Any,
    timeout: float = 120,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run the module of a program with arguments, until it ends or is killed."""
    texts = [str(each) for each in arguments]
    return _forks().run(program.__name__, texts, timeout, environment=dict(environment or {}))


def serve() -> None:
    """Fork for each line that is read."""
    end_with_parent()
    for name in LOADED:
        with suppress(ImportError):  # a program that needs it says so itself
            import_module(name)
    for line in sys.stdin.buffer:
        pid = os.fork()
        if pid == 0:
            _be(**json.loads(line))
        for answer in (pid, None):
            if answer is None:
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()


def _be(module: str, arguments: list[str], output: str, environment: Mapping[str, str]) -> NoReturn:
    end_with_parent()
    null, to = os.open(os.devnull, os.O_RDONLY), os.open(output, os.O_WRONLY | os.O_APPEND)
    for handle, standard in ((null, 0), (to, 1), (to, 2)):
        os.dup2(handle, standard)
    os.environ.update(environment)
    sys.argv[1:] = arguments
    code: Any = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.exit(code)


if __name__ == "__main__":
    serve()
