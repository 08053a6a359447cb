"""Redis: alone, replicated, watched by Sentinel, as a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trident.testing.servers.certificates import Certificates
from trident.testing.servers.process import ServerGroup, ServerProcess, installed, wait_until


class RedisServer(ServerProcess):
    """One Redis server, which keeps nothing on disk unless told to.

    Options are those of its command line: ``"--appendonly", "yes", "--appendfsync", "always"``.
    With `tls` it takes TLS only.
    """

    program = "redis-server"
    package = "redis-server"

    def __init__(
        self,
        folder: Path,
        *options: str,
        password: str | None = None,
        tls: Certificates | None = None,
    ) -> None:
        super().__init__(folder)
        self.options = options
        self.password = password
        self.tls = tls

    @property
    def url(self) -> str:
        scheme = "rediss" if self.tls else "redis"
        secret = f":{self.password}@" if self.password else ""
        return f"{scheme}://{secret}{self.host}:{self.port}"

    def command(self) -> Sequence[str]:
        options = ["--bind", self.host, "--dir", str(self.folder), "--save", ""]
        options += ["--appendonly", "no", "--repl-diskless-sync-delay", "0"]
        if self.password:
            options += ["--requirepass", self.password, "--masterauth", self.password]
        return [installed(self.program, self.package), *self._listening(), *options, *self.options]

    def answers(self) -> bool:
        return self.cli("ping") == "PONG"

    def cli(self, *words: str) -> str:
        """Return what the server says to a command, or what redis-cli says of it."""
        command = [installed("redis-cli", "redis-tools"), "-h", self.host, "-p", str(self.port)]
        if self.tls:
            command += ["--tls", "--cacert", str(self.tls.authority)]
        secret = {"REDISCLI_AUTH": self.password} if self.password else {}
        return subprocess.run(
            [*command, *words], env={**os.environ, **secret}, capture_output=True, text=True
        ).stdout.strip()

    def _listening(self) -> Sequence[str]:
        if self.tls is None:
            return ["--port", str(self.port)]
        files = ["--tls-cert-file", str(self.tls.certificate), "--tls-key-file", str(self.tls.key)]
        trust = ["--tls-ca-cert-file", str(self.tls.authority), "--tls-auth-clients", "no"]
        return ["--port", "0", "--tls-port", str(self.port), *files, *trust]


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


class RedisCluster(ServerGroup[RedisServer]):
    """A cluster of three masters that share the slots evenly, each with so many replicas."""

    scheme = "redis+cluster"

    def __init__(self, folder: Path, replicas: int = 0, node_timeout: int = 2000) -> None:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout))
        folders = [folder / f"node{number}" for number in range(3 + 3 * replicas)]
        super().__init__([RedisServer(each, *options) for each in folders])
        self._replicas = replicas

    def join(self) -> None:
        places = [f"{node.host}:{node.port}" for node in self.nodes]
        replicas = ["--cluster-replicas", str(self._replicas)]
        self.nodes[0].cli("--cluster", "create", *places, *replicas, "--cluster-yes")
        wait_until(self.is_complete, 60)

    def is_complete(self) -> bool:
        """Tell whether every node knows all slots served, and every replica is in step."""
        told = [node.cli("info", "replication") for node in self.nodes]
        following = sum("master_link_status:up" in each for each in told)
        return following == 3 * self._replicas and all(
            "cluster_state:ok" in node.cli("cluster", "info") for node in self.nodes
        )
