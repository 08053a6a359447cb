"""HBase: master, region server and Thrift gateway in one JVM."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from trident.testing.servers.java import JavaServer, jars
from trident.testing.servers.process import free_port

_HERE = Path(__file__).parent
_MODULES = (
    "opens java.base/java.lang",
    "opens java.base/java.lang.reflect",
    "opens java.base/java.nio",
    "opens java.base/sun.nio.ch",
    "opens java.base/jdk.internal.ref",
    "exports java.base/jdk.internal.misc",
    "exports java.base/sun.net.util",
)
_LOGGING = """\
log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class HBaseServer(JavaServer):
    """HBase behind its Thrift gateway, which keeps in its folder what it has acknowledged."""

    scheme = "hbase"
    patience = 90.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._zookeeper = free_port()

    def command(self) -> Sequence[str]:
        classpath = jars("hbase")
        settings = self.folder / "settings"
        settings.mkdir(exist_ok=True)
        self.write("settings/hbase-site.xml", _site(self._settings()))
        self.write("settings/log4j.properties", _LOGGING)
        modules = [f"--add-{kind}={name}=ALL-UNNAMED" for kind, name in map(str.split, _MODULES)]
        network = "-Djava.net.preferIPv4Stack=true"
        run = self.java(f"{settings}{os.pathsep}{classpath}/*", "512m", network, *modules)
        return [*run, str(_HERE / "OneHBase.java"), str(self.port)]

    def _settings(self) -> Mapping[str, object]:
        return {
            "hbase.rootdir": (self.folder / "data").as_uri(),
            "hbase.tmp.dir": self.folder / "tmp",
            "hadoop.tmp.dir": self.folder / "tmp" / "hadoop",
            "hbase.cluster.distributed": "false",
            "hbase.wal.provider": "filesystem",
            "hbase.unsafe.stream.capability.enforce": "false",
            "hbase.zookeeper.quorum": self.host,
            "hbase.zookeeper.property.clientPort": self._zookeeper,
            "hbase.zookeeper.property.dataDir": self.folder / "zookeeper",
            # A restarted server waits so long for the one that was killed; one that was paused for
            # longer gives up.
            "zookeeper.session.timeout": 10_000,
            "hbase.master.hostname": "localhost",
            "hbase.regionserver.hostname": "localhost",
            "hbase.unsafe.regionserver.hostname": "localhost",
            "hbase.localcluster.assign.random.ports": "true",
            "hbase.master.info.port": -1,
            "hbase.regionserver.info.port": -1,
            # Small, and quick to start.
            "hbase.table.sanity.checks": "false",
            "hbase.master.wait.on.regionservers.mintostart": 1,
            "hbase.master.wait.on.regionservers.interval": 50,
            "hbase.regionserver.msginterval": 100,
            "hbase.procedure.remote.dispatcher.delay.msec": 0,
            "hbase.client.pause": 50,
            "hbase.regionserver.handler.count": 6,
            "hbase.hconnection.threads.max": 16,
        }


def _site(settings: Mapping[str, object]) -> str:
    lines = [
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
        for name, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>"])
