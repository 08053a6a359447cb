"""Makes the store of a checkpoint from its URL, by the backend that its scheme names."""

from __future__ import annotations

from trident.backends.schemes import REDIS, BuiltIn, Schemes
from trident.backends.state_url import StateURL
from trident.states.checkpoint_store import CheckpointStore

CHECKPOINTS = Schemes(
    "checkpoint",
    "trident.checkpoints",
    {
        **dict.fromkeys(REDIS, BuiltIn("trident.backends.redis.checkpoint:from_url", "redis")),
        "zookeeper": BuiltIn("trident.backends.zookeeper:from_url", "zookeeper"),
        **dict.fromkeys(
            ("s3", "az", "gs"), BuiltIn("trident.backends.objectstore:from_url", "objectstore")
        ),
    },
    others=" The file systems of Spark (hdfs:, s3a:, abfss:, dbfs:) are for spark_checkpoint=.",
)
"""The schemes that the URL of a checkpoint may have."""


def checkpoint_from_url(url: StateURL) -> CheckpointStore:
    """The store that a URL describes; connects to nothing, needs no driver; raises
    StateURLError."""
    return CHECKPOINTS.make(url, CheckpointStore)  # type: ignore[type-abstract]
