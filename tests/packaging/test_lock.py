"""requirements.lock pins everything that pyproject.toml asks for, wherever it is installed."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.packaging.conftest import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
PINS = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))


def normalised(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name.group()).lower()


def asked_for() -> set[str]:
    described: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = described["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    groups += [
        [each for each in group if isinstance(each, str)]
        for group in described["dependency-groups"].values()
    ]
    return {normalised(each) for group in groups for each in group} - {project["name"]}


def test_everything_asked_for_is_pinned() -> None:
    assert asked_for() <= PINS.keys()


def test_every_pin_has_hashes() -> None:
    for block in re.split(r"\n(?=[a-z])", LOCK):
        if "==" in block:
            assert "--hash=sha256:" in block, block.splitlines()[0]


def test_a_package_has_one_version_whatever_the_python() -> None:
    assert len(PINS) == len(re.findall(r"^[a-z0-9-]+==", LOCK, re.MULTILINE))


@pytest.mark.parametrize("address", ["://", "--index-url", "--find-links", "--trusted-host", " @ "])
def test_the_lock_holds_no_address(address: str) -> None:
    assert address not in LOCK
