"""Object stores: moto for S3, Azurite for Azure, and a stand-in that may ignore conditions."""

from __future__ import annotations

import base64
import hmac
import http.client
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from trident.testing.servers.process import MissingServer, ServerProcess


class MotoServer(ServerProcess):
    """S3 in the memory of a process, by the package of that name."""

    program = "moto"
    package = "moto"

    @property
    def url(self) -> str:
        login = "access_key_id=any&secret_access_key=any"
        return f"s3://trident?{login}&endpoint=http://{self.host}:{self.port}"

    def command(self) -> Sequence[str]:
        place = ["-H", self.host, "-p", str(self.port)]
        return [sys.executable, "-m", "moto.server", *place]

    def answers(self) -> bool:
        return _put(self.host, self.port, "/trident") == 200


class AzuriteServer(ServerProcess):
    """Azure's blobs in the memory of a process, by the emulator that ``setup/servers`` fetches."""

    program = "node"
    package = "npm"
    account = "devstoreaccount1"
    # Microsoft's documentation gives this key to everyone.
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    @property
    def url(self) -> str:
        login = f"account_name={self.account}&account_key={self.key}"
        return f"az://trident?{login}&endpoint=http://{self.host}:{self.port}/{self.account}"

    def command(self) -> Sequence[str]:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trident-spark"
        found = sorted(cache.glob("azurite-*/node_modules/.bin/azurite-blob"))
        if not found:
            raise MissingServer("Azurite is not there", "npm fetches it, once: setup/servers")
        place = ["--blobHost", self.host, "--blobPort", str(self.port), "--inMemoryPersistence"]
        return [str(found[-1]), *place, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]

    def answers(self) -> bool:
        """Make the container, by a request that is signed as Azure wants it."""
        date, path = formatdate(usegmt=True), f"/{self.account}/trident"
        headers = f"x-ms-date:{date}\nx-ms-version:2021-12-02"
        signed = "PUT" + "\n" * 12 + f"{headers}\n/{self.account}{path}\nrestype:container"
        digest = hmac.digest(base64.b64decode(self.key), signed.encode(), "sha256")
        login = f"SharedKey {self.account}:{base64.b64encode(digest).decode()}"
        given = dict(line.split(":", 1) for line in headers.split("\n"))
        path += "?restype=container"
        return _put(self.host, self.port, path, {**given, "Authorization": login}) in (201, 409)


class StandIn(ThreadingHTTPServer):
    """As much of S3 and of Google's XML interface as a checkpoint needs.

    Conditions named in `ignored` always hold; the next `conflicts` puts are refused as those are
    that meet another one under way.
    """

    daemon_threads = True

    def __init__(self, *ignored: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.ignored = ignored
        self.conflicts = 0
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.generations = count(1000)
        self.lock = threading.Lock()

    def url(self, scheme: str) -> str:
        endpoint = f"http://{self.server_address[0]}:{self.server_address[1]}"
        login = {"s3": "skip_signature=true", "gs": "bearer_token=any"}[scheme]
        return f"{scheme}://trident?{login}&endpoint={endpoint}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Request(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            if self.server.conflicts:
                self.server.conflicts -= 1
                return self._answer(409, _ERROR % b"ConditionalRequestConflict")
            found = self.server.objects.get(self.path)
            if not self._holds(found and found[1]):
                return self._answer(412, _ERROR % b"PreconditionFailed")
            generation = next(self.server.generations)
            self.server.objects[self.path] = data, generation
        return self._answer(200, generation=generation)

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if "prefix" in (query := parse_qs(asked.query)):
            begin = f"{asked.path}/{query['prefix'][0]}"
            names = [unquote(each) for each in sorted(self.server.objects)]
            listed = "".join(
                _LISTED.format(name[len(asked.path) + 1 :])
                for name in names
                if name.startswith(begin)
            )
            return self._answer(200, f"<ListBucketResult>{listed}</ListBucketResult>".encode())
        if (found := self.server.objects.get(self.path)) is None:
            return self._answer(404, _ERROR % b"NoSuchKey")
        return self._answer(200, *found)

    def _holds(self, generation: int | None) -> bool:
        """Tell whether the conditions of a put hold on an object, None where there is none."""
        conditions = {
            "If-None-Match": lambda given: generation is None,
            "If-Match": lambda given: generation is not None and given == f'"{generation}"',
            "x-goog-if-generation-match": lambda given: int(given) == (generation or 0),
        }
        return all(
            holds(self.headers[name])
            for name, holds in conditions.items()
            if name in self.headers and name not in self.server.ignored
        )

    def _answer(self, status: int, data: bytes = b"", generation: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{generation}"')
        self.send_header("x-goog-generation", str(generation))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


_ERROR = b"<Error><Code>%b</Code></Error>"
_LISTED = (
    "<Contents><Key>{}</Key><Size>1</Size><ETag>1</ETag>"
    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
)


def _put(host: str, port: int, path: str, headers: Mapping[str, str] | None = None) -> int | None:
    asked = http.client.HTTPConnection(host, port, timeout=5)
    with closing(asked), suppress(OSError, http.client.HTTPException):
        asked.request("PUT", path, headers=headers or {})
        return asked.getresponse().status
    return None
