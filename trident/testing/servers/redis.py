"""Redis: alone, and as a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trident.testing.servers.process import ServerGroup, ServerProcess, installed, wait_until


class RedisServer(ServerProcess):
    """One Redis server, which keeps nothing on disk unless told to.

    Options are those of its command line: ``"--appendonly", "yes", "--appendfsync", "always"``.
    """

    program = "redis-server"
    package = "redis-server"

    def __init__(self, folder: Path, *options: str, password: str | None = None) -> None:
        super().__init__(folder)
        self.options = options
        self.password = password

    @property
    def url(self) -> str:
        secret = f":{self.password}@" if self.password else ""
        return f"redis://{secret}{self.host}:{self.port}"

    def command(self) -> Sequence[str]:
        options = ["--port", str(self.port), "--bind", self.host]
        options += ["--dir", str(self.folder), "--save", ""]
        options += ["--appendonly", "no", "--repl-diskless-sync-delay", "0"]
        if self.password:
            options += ["--requirepass", self.password, "--masterauth", self.password]
        return [installed(self.program, self.package), *options, *self.options]

    def answers(self) -> bool:
        return self.cli("ping") == "PONG"

    def cli(self, *words: str) -> str:
        """Return what the server says to a command, or what redis-cli says of it."""
        command = [installed("redis-cli", "redis-tools"), "-h", self.host, "-p", str(self.port)]
        secret = {"REDISCLI_AUTH": self.password} if self.password else {}
        return subprocess.run(
            [*command, *words], env={**os.environ, **secret}, capture_output=True, text=True
        ).stdout.strip()


class RedisCluster(ServerGroup[RedisServer]):
    """A cluster of three masters that share the slots evenly, each with `replicas` replicas."""

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
        answers = [node.cli("info", "replication") for node in self.nodes]
        following = sum("master_link_status:up" in each for each in answers)
        return following == 3 * self._replicas and all(
            "cluster_state:ok" in node.cli("cluster", "info") for node in self.nodes
        )
