"""`setup/servers`: what it installs, what it says where it can't, and which jars count as there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Machine

SCRIPT = ROOT / "setup" / "servers"
PROGRAMS = (
    *("redis-server", "redis-cli", "memcached", "openssl", "javac", "npm"),
    *("pg_isready", "postgres", "pgbouncer", "mariadbd", "chromium"),
)
PACKAGES = (
    "default-jdk-headless maven redis-server memcached postgresql pgbouncer mariadb-server "
    "openssl npm chromium-headless-shell"
)
FOLDERS = ("hbase-2.6.1", "hdfs-3.5.0", "kafka-4.2.0", "s3a-3.5.0", "spark_kafka-4.2.0")
JARS = [f"trident-spark/{folder}/server.jar" for folder in FOLDERS]
FAILED = (
    "This could not be downloaded: HBase 2.6.1, Kafka 4.2.0, Spark's source of Kafka 4.2.0, "
    "Hadoop's S3 3.5.0, a small HDFS 3.5.0"
)
LAST_ARGUMENT = 'for last; do :; done; folder=${last#-DoutputDirectory=}; echo "$@" >> %s\n'


def all_installed(machine: Machine, maven: str = 'touch "$folder/server.jar"') -> None:
    for program in PROGRAMS:
        machine.command(program, "exit 0\n")
    machine.command("mvn", LAST_ARGUMENT % (machine.folder / "mvn.log") + maven + "\n")


def jars(cache: Path) -> list[str]:
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*.jar"))


def test_jars_are_collected_once_into_the_users_cache(machine: Machine) -> None:
    all_installed(machine)
    done = machine.run(SCRIPT)
    assert done.returncode == 0, done.stderr
    assert "downloading HBase 2.6.1" in done.stdout
    assert "downloading Kafka 4.2.0" in done.stdout
    assert "downloading Spark's source of Kafka 4.2.0" in done.stdout
    assert jars(machine.folder / ".cache") == JARS

    again = machine.run(SCRIPT)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_the_cache_is_where_the_user_wants_it(machine: Machine, tmp_path: Path) -> None:
    all_installed(machine)
    machine.run(SCRIPT, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert jars(tmp_path / "cache") == JARS


@pytest.mark.parametrize("ending", ["exit 1", "kill -9 $PPID"])
def test_an_interrupted_download_is_not_taken_for_complete(machine: Machine, ending: str) -> None:
    all_installed(machine, f'touch "$folder/half.jar"; {ending}')
    machine.run(SCRIPT)
    for folder in FOLDERS:
        assert not (machine.folder / ".cache" / "trident-spark" / folder).exists()

    all_installed(machine)
    assert machine.run(SCRIPT).returncode == 0
    assert set(JARS) <= set(jars(machine.folder / ".cache"))


def test_a_failed_download_skips_tests_and_fails_in_ci(machine: Machine) -> None:
    all_installed(machine, "echo 'unknown host' >&2; exit 1")
    done = machine.run(SCRIPT)
    assert done.returncode == 0
    assert "unknown host" in done.stderr
    assert FAILED in done.stderr
    assert machine.run(SCRIPT, CI="true").returncode == 1


def test_a_cache_that_can_not_be_written_is_said(machine: Machine, tmp_path: Path) -> None:
    all_installed(machine)
    (tmp_path / "file").touch()
    done = machine.run(SCRIPT, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 0
    assert FAILED in done.stderr


def test_a_user_is_told_what_is_missing_and_the_one_line(machine: Machine) -> None:
    all_installed(machine)
    (machine.bin / "memcached").unlink()
    machine.apt_get()
    done = machine.run(SCRIPT)
    assert done.returncode == 0
    assert "this is not installed: memcached." in done.stderr
    assert f"sudo apt-get install {PACKAGES}" in done.stderr
    assert machine.packages == ""
    assert machine.run(SCRIPT, CI="true").returncode == 1


def test_root_has_them_installed(machine: Machine) -> None:
    all_installed(machine)
    hidden = (machine.bin / "redis-server").rename(machine.folder / "redis-server")
    machine.user(0)
    machine.apt_get(f'case "$*" in *redis-server*) mv {hidden} {machine.bin} ;; esac')
    done = machine.run(SCRIPT, CI="true")
    assert done.returncode == 0, done.stderr
    assert f"installing {PACKAGES}" in done.stdout
    assert "--no-install-recommends" in machine.packages


def test_an_installation_that_does_not_help_is_named(machine: Machine) -> None:
    all_installed(machine)
    (machine.bin / "redis-server").unlink()
    machine.user(0)
    machine.apt_get("exit 100")
    done = machine.run(SCRIPT, CI="true")
    assert done.returncode == 1
    assert "this is not installed: redis-server." in done.stderr


def test_java_home_has_to_be_a_jdk(machine: Machine) -> None:
    all_installed(machine)
    done = machine.run(SCRIPT, JAVA_HOME="/opt/jre")
    assert "this is not installed: /opt/jre/bin/javac." in done.stderr
    assert "JAVA_HOME, where it is set, has to be a JDK." in done.stderr


def test_a_browser_is_installed_where_there_is_none(machine: Machine) -> None:
    all_installed(machine)
    hidden = (machine.bin / "chromium").rename(machine.folder / "chromium")
    machine.user(0)
    machine.apt_get(f'case "$*" in *-headless-shell) mv {hidden} {machine.bin} ;; esac')
    done = machine.run(SCRIPT, CI="true")
    assert done.returncode == 0, done.stderr
    assert machine.packages.rstrip().endswith("chromium-headless-shell")


def test_where_no_browser_can_be_had_the_servers_are_installed_all_the_same(
    machine: Machine,
) -> None:
    all_installed(machine)
    (machine.bin / "chromium").unlink()
    hidden = (machine.bin / "redis-server").rename(machine.folder / "redis-server")
    machine.user(0)
    machine.apt_get(
        f'case "$*" in *-headless-shell) exit 100 ;; *redis-server*) mv {hidden} {machine.bin} ;; '
        "esac"
    )
    done = machine.run(SCRIPT)
    assert done.returncode == 0, done.stderr
    assert "this is not installed: chromium-headless-shell." in done.stderr
