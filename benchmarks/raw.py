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


class RawPostgres(RawClient):
    """COPY into a temporary table and one upsert from there; what one adds to isn't read."""

    _VALUE = "json"
    _CHANGE = "value = excluded.value"

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)
        self._table = f"raw_{self._VALUE}"
        columns = f"(key text PRIMARY KEY, value {self._VALUE})"
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} {columns}")

    def get(self, keys: Sequence[bytes]) -> None:
        pass

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        lines = b"".join([b"%b\t%b\n" % row for row in zip(keys, values, strict=True)])
        with self._connection.transaction():
            self._connection.execute(
                f"CREATE TEMPORARY TABLE given (LIKE {self._table}) ON COMMIT DROP"
            )
            with self._connection.cursor().copy("COPY given FROM STDIN") as copy:
                copy.write(lines)
            self._connection.execute(
                f"INSERT INTO {self._table} AS stored SELECT * FROM given "
                f"ON CONFLICT (key) DO UPDATE SET {self._CHANGE}"
            )

    def close(self) -> None:
        self._connection.close()


class RawPostgresNumbers(RawPostgres):
    """The amounts in arrays, and one upsert that adds them."""

    _VALUE = "bigint"

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        amounts = [int(value.split(b",")[1]) for value in values]
        self._connection.execute(
            f"INSERT INTO {self._table} AS stored SELECT * FROM unnest(%s::text[], %s::bigint[]) "
            "ON CONFLICT (key) DO UPDATE SET value = stored.value + excluded.value",
            [[key.decode() for key in keys], amounts],
        )


RAW: dict[str, type[RawClient]] = {
    "redis": RawRedis,
    "memcached": RawMemcached,
    "hbase": RawHBase,
    "postgres": RawPostgres,
    "PostgreSQL numbers": RawPostgresNumbers,
}
