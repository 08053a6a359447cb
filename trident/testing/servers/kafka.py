"""Kafka: broker and controller in one process, without ZooKeeper."""

from __future__ import annotations

import os
import shlex
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from trident.testing.servers.java import JavaServer, jars
from trident.testing.servers.process import free_port

_LOGGING = """\
Configuration:
  Appenders:
    Console:
      name: STDERR
      target: SYSTEM_ERR
      PatternLayout: {pattern: "%d %p %m (%c)%n"}
  Loggers:
    Root:
      level: WARN
      AppenderRef: [{ref: STDERR}]
"""


class KafkaServer(JavaServer):
    """One broker that is its own controller; what it has acknowledged outlives a kill."""

    scheme = "kafka"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._controller = free_port()

    def command(self) -> Sequence[str]:
        properties = str(self.write("server.properties", self._settings()))
        logging = f"-Dlog4j2.configurationFile={self.write('log4j2.yaml', _LOGGING)}"
        run = self.java(f"{jars('kafka')}/*", "256m", "-Xms64m", logging)
        broker = ["exec", *run, "kafka.Kafka", properties]
        if (self.folder / "data" / "meta.properties").exists():
            return ["sh", "-c", shlex.join(broker)]
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", properties]
        return ["sh", "-ec", f"{shlex.join([*run, *tool])}{os.linesep}{shlex.join(broker)}"]

    def _settings(self) -> Mapping[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{self.host}:{self._controller}",
            "listeners": (
                f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.host}:{self._controller}"
            ),
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            # One broker, so one copy of everything.
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            # Tests wait for what a production broker does in its own time.
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,  # records of tests may have times of long ago
            "log.initial.task.delay.ms": 100,
            "log.cleaner.backoff.ms": 100,
            "broker.heartbeat.interval.ms": 100,
            # A restarted broker waits so long for the one that was killed.
            "broker.session.timeout.ms": 1000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
        }
