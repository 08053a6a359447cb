"""`setup/java`: which Java will do, when one is installed, and how it is asked for."""

from __future__ import annotations

import pytest

from tests.packaging.conftest import ROOT, Machine

SCRIPT = ROOT / "setup" / "java"


@pytest.mark.parametrize("version", ["17.0.15", "17", "21.0.2", "25-ea"])
def test_java_17_and_newer_will_do(machine: Machine, version: str) -> None:
    machine.java(version)
    done = machine.run(SCRIPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("version", "name"), [("1.8.0_392", "8"), ("11.0.21", "11")])
def test_an_older_java_is_refused_by_version(machine: Machine, version: str, name: str) -> None:
    machine.java(version)
    done = machine.run(SCRIPT)
    assert done.returncode == 1
    assert f"Spark needs Java 17 or newer, and java is Java {name}." in done.stderr


def test_a_user_is_told_the_one_line(machine: Machine) -> None:
    machine.apt_get()
    done = machine.run(SCRIPT)
    assert done.returncode == 1
    assert "java was not found." in done.stderr
    assert "sudo apt-get install default-jre-headless" in done.stderr
    assert machine.packages == ""


def test_root_has_it_installed(machine: Machine) -> None:
    machine.user(0)
    java = machine.java("17.0.15", "later")
    machine.apt_get(f'case "$*" in *jre*) ln -s {java} {machine.bin / "java"} ;; esac')
    done = machine.run(SCRIPT)
    assert done.returncode == 0, done.stderr
    assert "default-jre-headless" in machine.packages


def test_a_distribution_whose_default_is_too_old_is_named(machine: Machine) -> None:
    machine.user(0)
    machine.apt_get()
    machine.java("11.0.21")
    done = machine.run(SCRIPT)
    assert done.returncode == 1
    assert "install an openjdk-17-jre-headless or newer" in done.stderr


def test_another_system_is_told_the_package(machine: Machine) -> None:
    done = machine.run(SCRIPT)
    assert done.returncode == 1
    assert "openjdk-17 or newer" in done.stderr
    assert "JAVA_HOME" in done.stderr


def test_java_home_is_looked_at_as_spark_does(machine: Machine) -> None:
    machine.java("17.0.15")
    home = machine.folder / "jdk"
    old = home / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.symlink_to(machine.java("11.0.21", "java11"))
    done = machine.run(SCRIPT, JAVA_HOME=str(home))
    assert done.returncode == 1
    assert f"{old} is Java 11." in done.stderr
    assert "Point JAVA_HOME at a newer one" in done.stderr
