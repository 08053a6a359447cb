"""Redis behind TLS, replicated, and watched by Sentinel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.servers.certificates import Certificates
from trident.testing.servers.process import installed
from trident.testing.servers.redis import RedisServer


class SecureRedisServer(RedisServer):
    """A server that takes TLS only."""

    def __init__(self, folder: Path, password: str, tls: Certificates) -> None:
        files = ["--tls-cert-file", str(tls.certificate), "--tls-key-file", str(tls.key)]
        trust = ["--tls-ca-cert-file", str(tls.authority), "--tls-auth-clients", "no"]
        super().__init__(folder, "--port", "0", *files, *trust, password=password)
        self.options = ("--tls-port", str(self.port), *self.options)
        self.authority = tls.authority

    @property
    def url(self) -> str:
        return super().url.replace("redis:", "rediss:")

    def cli(self, *words: str) -> str:
        return super().cli("--tls", "--cacert", str(self.authority), *words)


class RedisReplica(RedisServer):
    """A replica of another server; it has started when it is in step with it."""

    def __init__(self, folder: Path, master: RedisServer, *options: str) -> None:
        following = ("--replicaof", f"{master.host} {master.port}")
        super().__init__(folder, *following, *options, password=master.password)

    def answers(self) -> bool:
        return "master_link_status:up" in self.cli("info", "replication")


class RedisSentinel(RedisServer):
    """A Sentinel that alone decides when another server takes over.

    It watches `master`, and the replicas of it, which run already.
    """

    service = "counts"
    """The name by which clients ask for the master."""

    def __init__(self, folder: Path, master: RedisServer) -> None:
        super().__init__(folder)
        self.master = master

    @property
    def url(self) -> str:
        secret = f":{self.master.password}@" if self.master.password else ""
        return f"redis+sentinel://{secret}{self.host}:{self.port}/{self.service}"

    def command(self) -> Sequence[str]:
        file = self.folder / "sentinel.conf"
        # It notes there what it has learnt, and takes it up again when restarted.
        if not file.exists():
            file.write_text(self._configuration())
        return [installed(self.program, self.package), str(file), "--sentinel"]

    def answers(self) -> bool:
        replicas = self.master.cli("info", "replication").count("state=online")
        known = self.cli("sentinel", "replicas", self.service).splitlines()
        return known.count("name") >= replicas and super().answers()

    def master_port(self) -> int:
        """Return the port of the server that it calls the master now."""
        return int(self.cli("sentinel", "get-master-addr-by-name", self.service).split()[1])

    def _configuration(self) -> str:
        lines = [
            f"port {self.port}",
            f"bind {self.host}",
            f"dir {self.folder}",
            f"sentinel monitor {self.service} {self.master.host} {self.master.port} 1",
            f"sentinel down-after-milliseconds {self.service} 2000",
            f"sentinel failover-timeout {self.service} 2000",
        ]
        if self.master.password:
            lines.append(f"sentinel auth-pass {self.service} {self.master.password}")
        return "\n".join(lines) + "\n"
