"""A folder by URL, on a file system that Spark reaches through Hadoop."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from trident.log.errors import CheckpointError, LogUnavailableError
from trident.log.folders import Folder
from trident.spark.versions import is_connect
from trident.states.printable import masked

_CHUNK = 1 << 22
"""Bytes that cross into the JVM, or out of it, at once."""
_ADVICE = "Look after that file system, and what the session's settings say of it."


class HadoopFolder(Folder):
    """A folder of one of Hadoop's file systems, by the session's settings.

    A file is renamed when it is written. On an object store that is a copy, which is there as a
    whole or not at all, too.
    """

    def __init__(self, jvm: Any, files: Any, url: str) -> None:
        self.url, self.place = url, masked(url)
        self._jvm = jvm
        self._files = files

    @classmethod
    def at(cls, session: SparkSession, url: str) -> HadoopFolder:
        """Return the folder at `url`; raise CheckpointError where Spark knows no such place."""
        if is_connect(session):
            problem = "only a classic session has a spark_checkpoint=, and this is of Spark Connect"
            raise CheckpointError(masked(url), problem, "Leave it out: spouts need none.")
        try:
            jvm: Any = session._jvm
            settings = session._jsparkSession.sessionState().newHadoopConf()
            files = jvm.org.apache.hadoop.fs.Path(url).getFileSystem(settings)
        except (Py4JJavaError, PySparkException) as error:
            raise CheckpointError(
                masked(url),
                f"Spark can't use it: {_text(error)}",
                "Give the session the file system's jars and settings, as for reading there "
                "(docs/checkpoints.md); or a path where it is mounted.",
            ) from error
        return cls(jvm, files, url.rstrip("/"))

    def below(self, name: str) -> HadoopFolder:
        return HadoopFolder(self._jvm, self._files, f"{self.url}/{name}")

    def make(self) -> None:
        with self._reached():
            self._files.mkdirs(self._path())

    def names(self) -> list[str]:
        with self._reached(), suppress(FileNotFoundError), _missing_found_out():
            return [each.getPath().getName() for each in self._files.listStatus(self._path())]
        return []

    def read(self, name: str) -> bytes | None:
        path, content = self._path(name), self._jvm.org.apache.commons.io.IOUtils
        with self._reached(), suppress(FileNotFoundError), _missing_found_out():
            length = self._files.getFileStatus(path).getLen()
            sizes = [min(_CHUNK, length - start) for start in range(0, length, _CHUNK)]
            with closing(self._files.open(path)) as stream:
                return b"".join(content.toByteArray(stream, size) for size in sizes)
        return None

    def write(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        temporary, path = self._path(f"{secrets.token_hex(8)}.tmp"), self._path(name)
        with self._reached():
            try:
                with closing(self._files.create(temporary)) as output:
                    for part in parts:
                        for start in range(0, len(part), _CHUNK):
                            output.write(bytes(part[start : start + _CHUNK]))
                    if output.hasCapability("hsync"):
                        output.hsync()
                self._files.delete(path, False)
                if not self._files.rename(temporary, path):
                    problem = f"{temporary.getName()} can't be renamed to {name}"
                    raise LogUnavailableError(self.place, problem, _ADVICE)
            except BaseException:
                with suppress(Exception):  # else the next start does it
                    self._files.delete(temporary, False)
                raise

    def remove(self, name: str) -> None:
        with self._reached():
            self._files.delete(self._path(name), False)

    def _path(self, *name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path("/".join((self.url, *name)))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            raise LogUnavailableError(self.place, _text(error), _ADVICE) from error


@contextmanager
def _missing_found_out() -> Iterator[None]:
    """Raise as Python does where a file is not there, or not any more."""
    try:
        yield
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() == "java.io.FileNotFoundException":
            raise FileNotFoundError from error
        raise


def _text(error: Exception) -> str:
    """What the JVM has thrown, in a line without secrets."""
    thrown = getattr(error, "java_exception", None)
    return masked(str(thrown or error).partition("\n")[0])
