"""Redis: alone, replicated, watched by Sentinel, as a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from trident.testing.servers.certificates import Certificates
from trident.testing.servers.process import ServerProcess, installed, wait_until


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
        port: int | None = None,
        password: str | None = None,
        tls: Certificates | None = None,
    ) -> None:
        super().__init__(folder, port)
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

    It watches `master`, and the replicas of it, which run already; clients ask for the master by
    the name `service`.
    """

    def __init__(self, folder: Path, master: RedisServer, service: str = "counts") -> None:
        super().__init__(folder)
        self.master = master
        self.service = service

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


class RedisCluster:
    """A cluster of masters, without replicas, that share the slots evenly."""

    def __init__(self, folder: Path, nodes: int = 3) -> None:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
        folders = [folder / f"node{number}" for number in range(nodes)]
        self.nodes = [RedisServer(each, *options) for each in folders]
        self._running = ExitStack()

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    def start(self) -> None:
        """Start the nodes, join them, and return when every node knows all slots served."""
        with ExitStack() as started:
            for node in self.nodes:
                started.enter_context(node)
            places = [f"{node.host}:{node.port}" for node in self.nodes]
            self.nodes[0].cli("--cluster", "create", *places, "--cluster-yes")
            wait_until(self._serves_all_slots)
            self._running = started.pop_all()

    def kill(self) -> None:
        self._running.close()

    def _serves_all_slots(self) -> bool:
        return all("cluster_state:ok" in node.cli("cluster", "info") for node in self.nodes)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
