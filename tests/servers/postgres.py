"""PostgreSQL as a standby of another server, and behind PgBouncer."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from trident.testing.servers.postgres import PostgresServer, unprivileged
from trident.testing.servers.process import ServerProcess, installed


class PostgresStandby(PostgresServer):
    """A standby that follows another server from where that is now."""

    def __init__(self, folder: Path, primary: PostgresServer, *options: str) -> None:
        super().__init__(folder, *options)
        self.primary = primary

    def make_data(self) -> None:
        self.primary.copy_data(self.data)
        (self.data / "standby.signal").touch()
        primary = f"host={self.primary.host} port={self.primary.port} user={self.user}"
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{primary} application_name=standby'\n")

    def promote(self) -> None:
        """Have it take over; return when it does."""
        self.run("pg_ctl", "promote", "-w")


class PgBouncer(ServerProcess):
    """A pooler that lends a server's sessions to its clients for a transaction each."""

    program = "pgbouncer"
    package = "pgbouncer"
    ends_by = signal.SIGINT

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        super().__init__(folder)
        self.server = server

    @property
    def url(self) -> str:
        return f"postgresql://{self.server.user}@{self.host}:{self.port}/postgres"

    def command(self) -> Sequence[str]:
        found = installed(self.program, self.package, "/usr/sbin")
        users = self.folder / "users"
        users.write_text(f'"{self.server.user}" ""\n')
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={self.server.host} port={self.server.port}\n"
            f"[pgbouncer]\nlisten_addr = {self.host}\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {users}\n"
            "pool_mode = transaction\ndefault_pool_size = 4\n"
        )
        return [*unprivileged(), found, str(settings)]
