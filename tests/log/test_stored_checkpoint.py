"""Checkpoints by URL: who has them, what is refused, and what is never shown."""

from __future__ import annotations

import logging
import logging.config
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from tests.log.conftest import open_checkpoint
from trident.backends.checkpoints import CHECKPOINTS, checkpoint_from_url
from trident.backends.state_url import StateURL
from trident.batch.adopt import Adopt
from trident.batch.start_options import StartOptions
from trident.errors import PlanError
from trident.log.checkpoint import groups_at, hold_checkpoint, local_folder
from trident.log.entry import LogEntry
from trident.log.errors import (
    CheckpointError,
    CheckpointInUseError,
    CorruptLogError,
    LogUnavailableError,
)
from trident.log.folders import Folder
from trident.log.held import HeldCheckpoint
from trident.states.checkpoint_store import CheckpointStore, this_process
from trident.states.errors import StateURLError
from trident.states.values import Token
from trident.testing.servers.process import free_port
from trident.testing.servers.promised import Served

FIRST = LogEntry(1, "w", "a1", begun=Token(4, 0), committed=3, streams={"a/b": "c", "z": "d"})
GROUPS = ["a/b", "..", ".", "ü ß", "%2E", "lock", "logs"]

Hold = Callable[..., HeldCheckpoint]


class SomeStore(CheckpointStore):
    """What somebody else may bring: a dictionary, here."""

    _values: ClassVar[dict[str, bytes]] = {}

    def __init__(self, url: StateURL) -> None:
        self.where = str(url)

    def release(self) -> None:
        pass

    def names(self) -> list[str]:
        return list(self._values)

    def read(self, name: str) -> bytes | None:
        return self._values.get(name)

    def replace(self, name: str, new: bytes, expected: bytes | None) -> bool:
        if self._values.get(name) not in (expected, new):
            return False
        self._values[name] = new
        return True

    def place_of(self, name: str) -> str:
        return f"{name} in {self.where}"


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Holds checkpoints until the test ends."""
    with ExitStack() as held:

        def hold_one(place: str, spark_checkpoint: Folder | None = None) -> HeldCheckpoint:
            checkpoint = hold_checkpoint(place, spark_checkpoint)
            held.callback(checkpoint.release)
            return checkpoint

        yield hold_one


@pytest.fixture
def path(zookeeper_server: Served) -> str:
    """The URL of a new checkpoint in ZooKeeper."""
    return f"{zookeeper_server.url}/tests/{uuid4().hex}?session_timeout=1"


def test_each_group_has_a_log_of_its_own_whatever_its_name(url: str, hold: Hold) -> None:
    checkpoint = hold(url)
    assert groups_at(url) == checkpoint.groups() == []
    for group in GROUPS:
        checkpoint.log(group).append(replace(FIRST, streams={group: "s"}))
    assert groups_at(url) == checkpoint.groups() == sorted(GROUPS)
    for group in GROUPS:
        newest = checkpoint.log(group).newest()
        assert newest is not None
        assert newest.streams == {group: "s"}


def test_any_number_of_batches_leaves_one_value(url: str, hold: Hold) -> None:
    checkpoint = hold(url)
    log = checkpoint.log("words")
    for number in range(1, 301):
        log.append(replace(FIRST, number=number))
    assert checkpoint.groups() == ["words"]


def test_a_log_of_a_group_that_is_missing_is_an_error_not_left_behind(url: str, hold: Hold) -> None:
    checkpoint = hold(url)
    checkpoint.log("a/b").append(FIRST)
    checkpoint.release()
    with pytest.raises(CheckpointError) as raised:
        open_checkpoint(url, {"b": ["b"], "c": ["c"]})
    found = "stream(s) a/b, z, up to batch 3, in a group 'a/b' that this topology does not have"
    assert found in str(raised.value)
    assert f"remove or rename {checkpoint.log('a/b').place}" in str(raised.value)
    open_checkpoint(url, {"a/b": ["a/b"], "new": ["new"]}).release()


def test_a_second_run_of_this_process_is_told_that_it_runs_already(path: str, hold: Hold) -> None:
    held = hold(path)
    found = f"{held.where} is in use by a run of this process, {this_process()}"
    with pytest.raises(CheckpointInUseError, match=re.escape(found)) as raised:
        hold_checkpoint(path)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    held.release()
    held.release()
    hold(path)


def test_a_run_of_another_process_is_named_and_waited_for_once_it_is_killed(
    path: str, hold: Hold
) -> None:
    program = (
        "import sys; from trident.log.checkpoint import hold_checkpoint; "
        "held = hold_checkpoint(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(CheckpointInUseError, match=f"in process {holder.pid} on .*Stop that"):
            hold_checkpoint(path)
    finally:
        holder.kill()
        holder.communicate()
    hold(path)


def test_the_run_that_started_last_has_a_checkpoint_in_redis(
    redis_server: Served, hold: Hold
) -> None:
    url = f"{redis_server.url}?prefix={uuid4().hex}"
    assert hold(url).groups() == hold(url).groups() == []


def test_spark_has_a_folder_beside_a_url_and_only_there(
    url: str, hold: Hold, tmp_path: Path
) -> None:
    alone = hold(url)
    with pytest.raises(CheckpointError, match="words reads a streaming DataFrame.*spark_check"):
        alone.folder("words")
    alone.release()
    beside = local_folder(tmp_path)
    assert hold(url, beside).folder("a/b").place == str(tmp_path / "a%2Fb")
    with pytest.raises(CheckpointError, match="it is a folder, and spark_checkpoint= was given"):
        hold_checkpoint(tmp_path / "c", beside)
    with pytest.raises(CheckpointError, match="hdfs://nn/c: it is not a local file system"):
        local_folder("hdfs://nn/c")


def test_what_is_no_entry_is_an_error_that_says_where_it_is(redis_server: Served) -> None:
    import redis

    name = uuid4().hex
    url = f"{redis_server.url}?prefix={name}"
    with redis.Redis.from_url(redis_server.url) as client:
        client.hset(f"trident.checkpoint:{{{name}}}", "words", "no entry")
        with pytest.raises(CorruptLogError, match=f"field 'words' of the hash '.*{name}"):
            hold_checkpoint(url).log("words").newest()
        client.delete(f"trident.checkpoint:{{{name}}}")
        client.set(f"trident.checkpoint:{{{name}}}", "no hash")
        with pytest.raises(CheckpointError, match="it is not a hash"):
            open_checkpoint(url, {})
        with pytest.raises(CorruptLogError, match="it is not a hash"):
            hold_checkpoint(url).log("words").newest()


def test_an_entry_that_zookeeper_would_not_take_is_refused_before_it_is_sent(
    path: str, hold: Hold
) -> None:
    log = hold(path).log("words")
    log.append(FIRST)
    with pytest.raises(CheckpointError, match="has 1,?00.* bytes, and the store takes 1000000"):
        log.append(replace(FIRST, number=2, metadata={"words": "x" * 1_000_000}))
    assert log.newest() == FIRST


def test_what_one_user_has_made_another_does_not_read(zookeeper_server: Served, hold: Hold) -> None:
    place = f"{zookeeper_server.url.partition('//')[2]}/{uuid4().hex}?timeout=2"
    mine = hold(f"zookeeper://me:s3cr3t@{place}")
    mine.log("words").append(FIRST)
    assert mine.log("words").newest() == FIRST
    with pytest.raises(LogUnavailableError, match="the user may not do this") as raised:
        hold_checkpoint(f"zookeeper://me:other@{place}")
    assert "other" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://me:s3cr3t@127.0.0.1:{}/0?prefix=words",
        "redis+cluster://:s3cr3t@127.0.0.1:{}?prefix=words",
        "redis+sentinel://:s3cr3t@127.0.0.1:{}/main?prefix=words&sentinel_password=s3cr3t",
        "zookeeper://me:s3cr3t@127.0.0.1:{}/words?timeout=0.3&session_timeout=0.3",
    ],
)
def test_a_server_that_is_not_there_is_told_without_the_password(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    port = free_port()
    with pytest.raises(LogUnavailableError, match=f"127.0.0.1:{port}.*Start one") as raised:
        open_checkpoint(url.format(port), {"words": ["words"]})
    chain = [raised.value, raised.value.__cause__, raised.value.__context__]
    assert "s3cr3t" not in repr([(str(error), error and error.args) for error in chain])
    assert "s3cr3t" not in caplog.text
    assert "s3cr3t" not in repr(StartOptions(checkpoint=url, adopt=Adopt.from_checkpoint(url)))


def test_a_later_configuration_of_logging_does_not_show_the_password(
    zookeeper_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    place = f"{zookeeper_server.url.partition('//')[2]}/{uuid4().hex}"
    import trident.backends.zookeeper  # noqa: F401

    loggers = {"trident": {"level": "DEBUG"}}
    told = {"version": 1, "disable_existing_loggers": False, "loggers": loggers}
    before = logging.getLogger("trident").level
    try:
        logging.config.dictConfig(told)
        logging.getLogger().addHandler(caplog.handler)
        hold_checkpoint(f"zookeeper://me:s3cr3t@{place}").release()
    finally:
        logging.getLogger().removeHandler(caplog.handler)
        logging.getLogger("trident").setLevel(before)
    assert "s3cr3t" not in caplog.text


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://:s3cr3t@cache/0", "the URL of a checkpoint names it.*Add \\?prefix=name"),
        ("redis://:s3cr3t@cache/0?prefix=a&kind=opaque", "unknown option 'kind'; there are"),
        ("redis+cluster://cache?prefix=a&partitions=3", "unknown option 'partitions'"),
        ("redis://:s3cr3t@cache/0?prefix=a{b", "holds one of '{'"),
        ("redis://:s3cr3t@cache/0?prefix=a&timeout=-1", "timeout -1.0 is not above 0"),
        ("rediss://cache/0?prefix=a&tls=false", "it speaks TLS"),
        ("zookeeper://:s3cr3t@one/a", "a user and a password go together"),
        ("zookeeper://one", "a path names the checkpoint, and can't be '/'"),
        ("zookeeper://one/a//b", "can't be '/a//b'"),
        ("zookeeper://one/zookeeper/b", "can't be"),
        ("zookeeper:words", "the URL names no host.*zookeeper://host:2181"),
        ("zookeeper://one/a?prefix=b", "unknown option 'prefix'; there are: session_timeout"),
        ("zookeeper://one/a?timeout=0", "above 0 seconds"),
        ("zookeeper://one/a?session_timeout=1e9", "2,147,483 seconds at most"),
        ("hdfs://me:s3cr3t@nn:8020/c", "no scheme of a checkpoint's URL is 'hdfs'"),
        ("redis://me:s3cr3t@cache/0@x?prefix=a", "checkpoint redis:….*it has an @"),
    ],
)
def test_a_url_that_cannot_be_one_is_told_without_the_password(url: str, text: str) -> None:
    with pytest.raises(CheckpointError, match=text) as raised:
        open_checkpoint(url, {})
    assert "s3cr3t" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"spark_checkpoint": "/mnt"}, "a spark_checkpoint without a checkpoint"),
        ({"checkpoint": "redis:x", "spark_checkpoint": 7}, "the spark_checkpoint is the path of a"),
    ],
)
def test_the_folder_beside_a_url_is_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises(PlanError, match=text):
        StartOptions(**options)


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [("redis://h?prefix=a", "redis", "redis"), ("zookeeper://h/a", "kazoo.client", "zookeeper")],
)
def test_a_driver_that_is_missing_is_told_with_its_extra(
    url: str, driver: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    checkpoint_from_url(StateURL.parse(url))
    with pytest.raises(ImportError, match=rf'pip install "trident-spark\[{extra}\]"'):
        open_checkpoint(url, {})


def test_a_store_of_another_package_keeps_checkpoints_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "some_store-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{CHECKPOINTS.group}]\nsome = {__name__}:SomeStore\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    checkpoint = open_checkpoint("some:place", {})
    checkpoint.log("words").append(FIRST)
    with pytest.raises(CheckpointError, match="that this topology does not have"):
        open_checkpoint("some:place", {"other": ["other"]})
    with pytest.raises(StateURLError, match="there are: .*, some, zookeeper"):
        checkpoint_from_url(StateURL.parse("sonme:place"))
