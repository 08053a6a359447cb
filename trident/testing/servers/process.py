"""A server's process: started, killed, paused, and restarted in its place.

By hand, as no library for test servers does all that tests of failures need: the same server killed
or paused at a moment of the test's, and started again on its port with its data. It ends with the
process that started it, however that ends.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from trident.states.errors import TridentError

QUICK = "TRIDENT_TEST_QUICK"
"""The variable of a run that needs no server: none is to be had there."""
# Reads until the process that started it has ended, in whatever way
_GUARD = ("sh", "-c", 'read -r _; kill -9 "$0"')


# Below those that systems give to outgoing connections: a client that knocks at a dead server's
# port there may be connected to itself, and the server could not have its port again.
_LOWEST, _HIGHEST = 12_000, 22_000
_BUS = 10_000


@dataclass(eq=False, repr=False)
class MissingServer(TridentError):
    """A server can't be had on this machine."""

    problem: str
    advice: str

    _template = "{problem}. {advice}"


def refuse_where_quick() -> None:
    """Raise MissingServer in a run that shall need no server."""
    if QUICK in os.environ:
        raise MissingServer(f"{QUICK} is set, and this needs a server", "Unset it to have one")


class ServerProcess(ABC):
    """A server of one process, on this machine only, which ends with the process that started it.

    Its data and its log are in `folder`, which is made if it isn't there. A restarted server has
    the port it had. `process` is what was started last.
    """

    scheme: ClassVar[str] = ""
    program: ClassVar[str]
    package: ClassVar[str]
    patience: ClassVar[float] = 30.0
    ends_by: ClassVar[signal.Signals] = signal.SIGTERM
    """What asks it to end, with its clients connected."""

    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.log = folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address that `state_from_url` takes."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return what is run; raise MissingServer where it isn't installed."""

    def answers(self) -> bool:
        """Tell whether it serves clients."""
        return accepts(self.host, self.port)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it, and return when it answers.

        Raises MissingServer where it can't be had, or TRIDENT_TEST_QUICK says that no server is
        needed; and RuntimeError, with the end of its log, where it doesn't start.
        """
        refuse_where_quick()
        assert not self.running, f"{self.program} runs already"
        command = self.command()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        guard = (*_GUARD, str(self.process.pid))
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)
        try:
            wait_until(lambda: not self.running or self.answers(), self.patience)
            started = self.running
        except TimeoutError:
            started = False
        except BaseException:
            self.kill()
            raise
        if not started:
            self.kill()
            log_end = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
            raise RuntimeError(f"{self.program} did not start; its log ends:\n{log_end}")

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self._ended()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        if self.process is not None:
            self.resume()
            self.process.send_signal(self.ends_by)
            self._ended()

    def pause(self) -> None:
        """Let it do nothing more, its connections open, until `resume`."""
        self._signal(signal.SIGSTOP)
        # The signal is only on its way: a thread at work on another core may still answer.
        wait_until(self._stands_still)

    def _stands_still(self) -> bool:
        return self.process is None or stands_still(self.process.pid)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        """Start it again, on the same port and data; stop it first where it runs."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def _ended(self) -> None:
        assert self.process is not None
        # The guard goes before the process is reaped: then its number can't be another's yet.
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.kill()
            self._guard.wait()
            self._guard.stdin.close()
            self._guard = None
        try:
            self.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


Node = TypeVar("Node", bound=ServerProcess)


class ServerGroup(Generic[Node]):
    """Several servers that run together."""

    scheme: ClassVar[str]

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._running = ExitStack()

    @property
    def url(self) -> str:
        """The address that `state_from_url` takes."""
        return f"{self.scheme}://{','.join(f'{node.host}:{node.port}' for node in self.nodes)}"

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for node in self.nodes:
                started.enter_context(node)
            self.join()
            self._running = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def join(self) -> None:
        """Let the nodes know of each other; return when they serve together."""


def stands_still(process: int) -> bool:
    """Return whether every thread of a process is stopped, or has ended."""
    threads = Path(f"/proc/{process}/task").glob("*/stat")
    return all(thread.read_text().rpartition(") ")[2][0] in "TZX" for thread in threads)


def installed(program: str, package: str, *folders: str) -> str:
    """Return where `program` is, on PATH or in `folders`; raise MissingServer where it isn't."""
    found = shutil.which(program, path=os.pathsep.join([os.environ["PATH"], *folders]))
    if found is None:
        raise not_installed(program, package)
    return found


def not_installed(program: str, package: str) -> MissingServer:
    """Return the error that names Debian's package of a program."""
    return MissingServer(f"{program} is not installed", f"On Debian: apt-get install {package}")


def is_root() -> bool:
    return os.getuid() == 0


def wait_until(condition: Callable[[], object], patience: float = 30.0) -> None:
    """Return when `condition` is true; raise TimeoutError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not become so within {patience} s")
        time.sleep(0.02)


def free_port() -> int:
    """Return a port that is free, and so is the one 10,000 above it, for Redis Cluster's bus.

    No other call returns it, in whatever process, as long as this process runs.
    """
    for port in random.sample(range(_LOWEST, _HIGHEST), _HIGHEST - _LOWEST):
        if _is_free(port) and _is_free(port + _BUS) and _claim(port):
            return port
    raise RuntimeError(f"no port from {_LOWEST} to {_HIGHEST} is free")


def accepts(host: str, port: int) -> bool:
    """Tell whether someone takes connections there; an IPv6 address may be in brackets."""
    try:
        with socket.create_connection((host.strip("[]"), port), 3):
            return True
    except OSError:  # no program does, or no host has that name
        return False


def _claim(port: int) -> bool:
    """Take a port whose server doesn't run yet; return False where somebody has taken it.

    On Linux, by a name without a file, which is free again when this process has ended.
    """
    if sys.platform != "linux":
        return True
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0trident-port-{port}")
    except OSError:
        claim.close()
        return False
    claim.detach()  # left open
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
