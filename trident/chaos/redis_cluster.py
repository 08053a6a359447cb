"""A Redis Cluster in which a replica takes over where a master dies."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from trident.testing.servers.process import wait_until
from trident.testing.servers.redis import RedisServer

_OPTIONS = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000")


class ReplicatedCluster:
    """Three masters, each with a replica."""

    def __init__(self, folder: Path) -> None:
        folders = [folder / f"node{number}" for number in range(6)]
        self.nodes = [RedisServer(each, *_OPTIONS) for each in folders]
        self._running = ExitStack()
        self._choose = random.Random(1)

    @property
    def url(self) -> str:
        """The address that `state_from_url` takes."""
        return "redis+cluster://" + ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    def fail_over(self) -> str:
        """Kill a master, and start it again when its replica has taken over."""
        master = self._choose.choice([node for node in self.nodes if _role(node) == "master"])
        others = [node for node in self.nodes if node is not master]
        masters = sum(_role(node) == "master" for node in others)
        master.kill()
        wait_until(lambda: sum(_role(node) == "master" for node in others) > masters, 60)
        master.start()
        wait_until(self._complete, 60)
        return "failed over"

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for node in self.nodes:
                started.enter_context(node)
            places = [f"{node.host}:{node.port}" for node in self.nodes]
            create = ("--cluster", "create", *places, "--cluster-replicas", "1", "--cluster-yes")
            self.nodes[0].cli(*create)
            wait_until(self._complete, 60)
            self._running = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _complete(self) -> bool:
        """Whether every node knows all slots served, and every replica follows its master."""
        told = [node.cli("info", "replication") for node in self.nodes]
        following = sum("master_link_status:up" in each for each in told)
        return following == 3 and all(
            "cluster_state:ok" in node.cli("cluster", "info") for node in self.nodes
        )


def _role(node: RedisServer) -> str:
    lines = node.cli("info", "replication").splitlines()
    return next((line[5:] for line in lines if line.startswith("role:")), "")
