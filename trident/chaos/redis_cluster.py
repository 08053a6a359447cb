"""A Redis Cluster in which a replica takes over where a master dies."""

from __future__ import annotations

import random
from pathlib import Path

from trident.testing.servers.process import wait_until
from trident.testing.servers.redis import RedisCluster, RedisServer


class ReplicatedCluster(RedisCluster):
    """Three masters, each with a replica."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, replicas=1, node_timeout=1000)
        self._choose = random.Random(1)

    def fail_over(self) -> str:
        """Kill a master, and start it again when its replica has taken over."""
        master = self._choose.choice([node for node in self.nodes if _role(node) == "master"])
        others = [node for node in self.nodes if node is not master]
        masters = sum(_role(node) == "master" for node in others)
        master.kill()
        wait_until(lambda: sum(_role(node) == "master" for node in others) > masters, 60)
        master.start()
        wait_until(self.is_complete, 60)
        return "failed over"


def _role(node: RedisServer) -> str:
    lines = node.cli("info", "replication").splitlines()
    return next((line[5:] for line in lines if line.startswith("role:")), "")
