"""ZooKeeper: one server, of the jars that PySpark brings."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

from trident.testing.servers.java import JavaServer, pyspark_home

_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
"""


class ZooKeeperServer(JavaServer):
    """One ZooKeeper server, which syncs what it acknowledges, and so outlives a kill."""

    scheme = "zookeeper"

    def command(self) -> Sequence[str]:
        settings = self.write("zoo.cfg", self._settings())
        logging = f"-Dlog4j2.configurationFile={self.write('log4j2.properties', _LOGGING)}"
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        return [*self.java(f"{pyspark_home()}/jars/*", "128m", logging), main, str(settings)]

    def answers(self) -> bool:
        # Not by "ruok", which is answered before there can be sessions.
        with suppress(OSError), socket.create_connection((self.host, self.port), 1) as asked:
            asked.sendall(b"isro")
            return asked.recv(100) == b"rw"
        return False

    def _settings(self) -> Mapping[str, object]:
        return {
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "isro",
            # Tests wait for sessions to expire: a session lasts two ticks at least.
            "tickTime": 100,
            "maxSessionTimeout": 60_000,
            "maxClientCnxns": 0,
        }
