"""PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from trident.testing.servers.process import (
    ServerProcess,
    installed,
    is_root,
    not_installed,
    stands_still,
)

_DEBIAN = "/usr/lib/postgresql"
"""Where Debian has the server's programs, a folder a version, off everybody's PATH."""

# It refuses to run as root. Its data are in a folder that only root may enter.
_UNPRIVILEGED = (
    *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
)


class PostgresServer(ServerProcess):
    """One PostgreSQL server, whose data survive its end, but not a loss of power.

    Options are settings, as in its configuration: ``"max_connections=10"``.
    """

    program = "postgres"
    package = "postgresql"
    user = "trident"
    ends_by = signal.SIGINT  # with SIGTERM it would wait for its clients

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder)
        self.data = folder / "data"
        self.options = options

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}@{self.host}:{self.port}/postgres"

    def command(self) -> Sequence[str]:
        if not self.data.exists():
            self.make_data()
        settings = [f"listen_addresses={self.host}", "unix_socket_directories=", "fsync=off"]
        return [
            *unprivileged(),
            program(self.program),
            *("-D", str(self.data), "-p", str(self.port)),
            *(word for each in (*settings, *self.options) for word in ("-c", each)),
        ]

    def make_data(self) -> None:
        """Make the folder of its data: an empty database."""
        self.own(self.data)
        self.run("initdb", "-U", self.user, *"-A trust -E UTF8 --locale=C --no-sync".split())

    def copy_data(self, target: Path) -> None:
        """Copy its data into another folder while it runs, as a backup does."""
        self.own(target)
        place = ("-h", self.host, "-p", str(self.port), "-U", self.user)
        command = [*unprivileged(), program("pg_basebackup"), *place, "-D", str(target)]
        subprocess.run([*command, "-c", "fast", "--no-sync"], check=True, capture_output=True)

    def answers(self) -> bool:
        command = [program("pg_isready"), "-q", "-h", self.host, "-p", str(self.port)]
        return subprocess.run(command).returncode == 0

    def kill(self) -> None:
        """End it at once, with the processes that serve its clients."""
        self._signal(signal.SIGKILL)
        super().kill()

    def __exit__(self, *_: object) -> None:
        # Ended by itself it takes its shared memory along.
        self.stop()

    def backends(self) -> Iterator[int]:
        """Return the processes that it has started, one for each client and some of its own."""
        if self.process is not None:
            for stat in Path("/proc").glob("[0-9]*/stat"):
                try:
                    parent = stat.read_text().rpartition(") ")[2].split()[1]
                except OSError:  # it has just ended
                    continue
                if parent == str(self.process.pid):
                    yield int(stat.parent.name)

    def run(self, name: str, *words: str) -> None:
        """Run one of its programs on its data."""
        command = [*unprivileged(), program(name), "-D", str(self.data), *words]
        subprocess.run(command, check=True, capture_output=True)

    def own(self, folder: Path) -> None:
        """Make a folder that belongs to whom the server runs as."""
        folder.mkdir(mode=0o700)
        if is_root():
            shutil.chown(folder, "nobody", "nogroup")

    def _signal(self, number: signal.Signals) -> None:
        if number != signal.SIGCONT:
            super()._signal(signal.SIGSTOP)  # or it would start others in their place
        backends = list(self.backends())
        super()._signal(number)
        for process in backends:
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _stands_still(self) -> bool:
        return super()._stands_still() and all(map(stands_still, self.backends()))


def unprivileged() -> Sequence[str]:
    """Return what a command begins with that must not run as root."""
    return _UNPRIVILEGED if is_root() else ()


def program(name: str) -> str:
    """Return where a program of PostgreSQL is; raise MissingServer where it isn't installed."""
    installed("pg_isready", PostgresServer.package)
    versions = sorted(Path(_DEBIAN).glob("*/bin"), key=lambda folder: float(folder.parent.name))
    path = os.pathsep.join([*map(str, reversed(versions)), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if found is None:
        raise not_installed(name, PostgresServer.package)
    return found
