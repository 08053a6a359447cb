"""``python -m trident doctor`` and ``backends``: what is found, and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from tests.cli import counted
from tests.packaging.conftest import ROOT
from trident.backends.redis.examination import examine_server
from trident.cli import backends
from trident.cli.doctor import workers_of_session
from trident.cli.main import main
from trident.testing.servers.promised import Served


def test_a_store_that_is_fit_is_no_problem(
    redis_server: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(counted.PLACE, f"sqlite:{tmp_path}/counts.db")
    assert main(["doctor", "tests.cli.counted:endless", redis_server.url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"ok       {tmp_path}/counts.db will be made at the first start." in lines
    assert any("evicts no keys" in line for line in lines)
    assert not (tmp_path / "counts.db").exists()


def test_every_store_from_redis_to_hbase_can_be_looked_at(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    stores = ("redis_cluster", "memcached_server", "postgres_server", "hbase_server")
    urls = [request.getfixturevalue(store).url for store in stores]
    urls[-1] += "/doctor/f"  # a table that is not there
    main(["doctor", *urls, "--json"])
    found = list(map(json.loads, capsys.readouterr().out.splitlines()))
    for name in ("redis", "memcached", "postgresql", "hbase"):
        assert any(each["what"].startswith(f"{name} at ") for each in found), name
    # A server of tests need not survive a loss of power.
    problems = [each["what"] for each in found if each["level"] == "problem"]
    assert all("has fsync off" in problem for problem in problems), problems


def test_what_is_away_or_inexact_is_told_without_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(counted.PLACE, "redis://me:s3cret@127.0.0.1:1/0?kind=nontransactional")
    missing = tmp_path / "nowhere"
    assert main(["doctor", "tests.cli.counted:topology", f"sqlite:{missing}/counts.db"]) == 1
    told = capsys.readouterr().out
    assert "s3cret" not in told
    assert "problem  redis at 127.0.0.1:1: nothing listens there" in told
    assert "warning  tests.cli.counted:topology/count is" in told
    assert f"problem  {missing} is not a folder. Make it, or give another path." in told


def test_a_store_of_checkpoints_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = "zookeeper://127.0.0.1:1/log?timeout=0.1&session_timeout=0.2"
    assert main(["doctor", nobody]) == 1
    told = [each for each in capsys.readouterr().out.splitlines() if "127.0.0.1:1" in each]
    assert [each.startswith("problem") for each in told] == [True]
    assert main(["doctor", "s3a://bucket/words"]) == 2
    assert "sqlite, zookeeper. Did you mean 's3'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("facts", "replicas", "told"),
    [
        ({"role": "slave"}, 0, "problem  redis at cache:6379: its role is slave"),
        ({"aof_enabled": "0"}, 0, "warning  redis at cache:6379 keeps no append-only file, so"),
        ({"aof_enabled": "0", "connected_slaves": "1"}, 1, "its replicas are waited for"),
        ({"appendfsync": "always"}, 0, "ok       redis at cache:6379 syncs every write"),
        ({"appendfsync": "everysec"}, 0, "warning  redis at cache:6379 has appendfsync everysec"),
        ({}, 0, "doesn't tell its appendfsync"),
        (
            {"maxmemory_policy": "allkeys-lru", "maxmemory": "9", "maxmemory_human": "9B"},
            0,
            "problem  redis at cache:6379 evicts keys when 9B are full",
        ),
        ({"maxmemory_policy": "allkeys-lru"}, 0, "warning  redis at cache:6379 has maxmemory-"),
        ({}, 2, "problem  redis at cache:6379 has 0 replicas, and batches wait for 2"),
    ],
)
def test_what_settings_of_redis_mean(facts: Mapping[str, str], replicas: int, told: str) -> None:
    given = {"role": "master", "aof_enabled": "1", "maxmemory": "0", **facts}
    found = list(map(str, examine_server(("cache", 6379), given, replicas)))
    assert any(told in each for each in found), found


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (None, "Java: there is no"),
        ("exit 3", "does not run"),
        ("echo 'openjdk version \"11.0.2\"' >&2", '"11.0.2". Spark needs Java 17'),
        ("echo 'java version \"1.8.0_1\"' >&2", "Spark needs Java 17 or newer"),
    ],
)
def test_a_java_that_spark_cannot_use_is_a_problem(
    program: str | None,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if program is not None:
        (tmp_path / "bin").mkdir()
        java = tmp_path / "bin" / "java"
        java.write_text(f"#!/bin/sh\n{program}\n")
        java.chmod(0o700)
    assert main(["doctor"]) == 1
    [line] = [each for each in capsys.readouterr().out.splitlines() if each.startswith("problem")]
    assert problem in line


def test_workers_of_another_python_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 3.2\n")
    python.chmod(0o700)
    monkeypatch.setenv("PYSPARK_PYTHON", os.fspath(python))
    assert main(["doctor"]) == 1
    assert f"{python}, is 3.2, and this one 3." in capsys.readouterr().out


def test_what_is_not_installed_is_named_with_its_pip_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(package: str) -> str:
        if package in ("redis", "pandas"):
            raise PackageNotFoundError
        return "1.2.3"

    monkeypatch.setattr(backends, "version", version)
    assert main(["backends"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert 'missing: pip install "trident-spark[redis]"' in lines["redis"]
    assert lines["memcached"].endswith("states (memcached); pymemcache 1.2.3")
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert 'ok       redis: not installed. Where it is needed: pip install "tr' in told
    assert "warning  spark: pandas is missing. Install it: pip install" in told


def test_backends_lists_every_extra_and_every_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    import tomllib

    from trident.backends.checkpoints import CHECKPOINTS
    from trident.backends.rows.urls import DATABASES
    from trident.backends.urls import STATES

    project: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert main(["backends", "--json"]) == 0
    rows = list(map(json.loads, capsys.readouterr().out.splitlines()))
    named = {row["name"] for row in rows}
    assert named >= {"memory", "sqlite", *project["optional-dependencies"]} - {"all"}
    listed = {scheme for row in rows for scheme in row["schemes"]}
    assert listed >= {*STATES.built_in, *CHECKPOINTS.built_in, *DATABASES.built_in}
    assert all(row["offers"] for row in rows)


def test_a_topology_behind_session_is_no_master(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--session", "words:topology"]) == 1
    assert "no master of Spark begins as 'words:topology'" in capsys.readouterr().out


def test_the_line_that_mends_workers_names_their_python_as_a_shell_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pyspark")
    answer = {"place": "one, /opt/my env/python", "python": "3.11.7", "trident": None}
    answer |= {"problems": {"trident": "not there"}, "lacking": []}
    monkeypatch.setattr("trident.spark.session.session_at", lambda master: None)
    monkeypatch.setattr("trident.spark.access.describe_session", lambda session: "session: Spark")
    monkeypatch.setattr("trident.spark.workers.ask_workers", lambda *asked: [answer])
    _, lacking = workers_of_session("spark://one:7077", ())
    assert lacking.advice.startswith("Run there: '/opt/my env/python' -m pip install ")
