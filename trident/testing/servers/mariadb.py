"""MariaDB."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from trident.testing.servers.process import ServerProcess, installed, is_root

_DEBIAN = "/usr/sbin"
"""Where Debian has the server itself, off the PATH of users."""


class MariaDBServer(ServerProcess):
    """One MariaDB server, whose data survive its end, but not a loss of power.

    Options are those of its command line: ``"--max-connections=10"``.
    """

    program = "mariadbd"
    package = "mariadb-server"
    user = "trident"
    database = "trident"

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder)
        self.data = folder / "data"
        self.options = options

    @property
    def url(self) -> str:
        return f"mariadb://{self.user}@{self.host}:{self.port}/{self.database}"

    def command(self) -> Sequence[str]:
        server = installed(self.program, self.package, _DEBIAN)
        own = ["--no-defaults", f"--datadir={self.data}", *(["--user=root"] if is_root() else [])]
        if not self.data.exists():
            make = installed("mariadb-install-db", self.package)
            subprocess.run([make, *own, "--skip-test-db"], check=True, capture_output=True)
        statements = self.folder / "start.sql"  # one a line
        statements.write_text(
            f"CREATE DATABASE IF NOT EXISTS {self.database};\n"
            f"CREATE USER IF NOT EXISTS {self.user}@'%';\n"
            f"GRANT ALL ON {self.database}.* TO {self.user}@'%';\n"
        )
        place = [f"--bind-address={self.host}", f"--port={self.port}", "--socket="]
        settings = ["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=2"]
        return [server, *own, *place, *settings, f"--init-file={statements}", *self.options]

    def answers(self) -> bool:
        admin = [installed("mariadb-admin", self.package), "--no-defaults", f"--user={self.user}"]
        place = [f"--host={self.host}", f"--port={self.port}"]
        return subprocess.run([*admin, *place, "ping"], capture_output=True).returncode == 0
