"""What one would write with a store's own client: read all keys, write all values; no guarantee."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

_CHUNK = 2000


class RawClient(ABC):
    """The reads and the writes of a batch, of bytes that were prepared beforehand."""

    @abstractmethod
    def get(self, keys: Sequence[bytes]) -> None:
        """Read `keys`."""

    @abstractmethod
    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write `values` under `keys`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection."""


class RawRedis(RawClient):
    """MGET and MSET of 2000 keys, one after the other."""

    def __init__(self, url: str) -> None:
        from redis import Redis

        self._client = Redis.from_url(url)

    def get(self, keys: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _CHUNK):
            self._client.mget(keys[start : start + _CHUNK])

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            self._client.mset(dict(zip(keys[chunk], values[chunk], strict=True)))

    def close(self) -> None:
        self._client.close()


class RawMemcached(RawClient):
    """get_many and set_many of 2000 keys, on the first node: the client for several is slower."""

    def __init__(self, url: str) -> None:
        from pymemcache import Client

        host, port = re.findall(r"([^/:,]+):(\d+)", url.partition("://")[2])[0]
        self._client = Client((host, int(port)), no_delay=True)

    def get(self, keys: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _CHUNK):
            self._client.get_many(keys[start : start + _CHUNK])

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            self._client.set_many(dict(zip(keys[chunk], values[chunk], strict=True)), noreply=False)

    def close(self) -> None:
        self._client.close()


class RawHBase(RawClient):
    """Rows and batches of 1000, in a table of its own."""

    def __init__(self, url: str) -> None:
        import happybase

        host, port = url.partition("://")[2].split(":")
        self._connection = happybase.Connection(host, int(port))
        if b"raw" not in self._connection.tables():
            self._connection.create_table("raw", {"state": {"max_versions": 1}})
        self._table = self._connection.table("raw")

    def get(self, keys: Sequence[bytes]) -> None:
        for start in range(0, len(keys), 1000):
            self._table.rows(keys[start : start + 1000], columns=[b"state:raw"])

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        with self._table.batch(batch_size=1000) as batch:
            for key, value in zip(keys, values, strict=True):
                batch.put(key, {b"state:raw": value})

    def close(self) -> None:
        self._connection.close()


RAW: dict[str, type[RawClient]] = {
    "redis": RawRedis,
    "memcached": RawMemcached,
    "hbase": RawHBase,
}
