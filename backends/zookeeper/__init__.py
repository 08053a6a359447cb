"""Checkpoints in ZooKeeper: the logs of a topology's groups, for a driver on any machine."""

from __future__ import annotations

from trident.backends.zookeeper.checkpoint import ZooKeeperCheckpoint
from trident.backends.zookeeper.urls import from_url

__all__ = ["ZooKeeperCheckpoint", "from_url"]
