"""CHANGELOG.md tells of the version that pyproject.toml names."""

from __future__ import annotations

import tomllib

from tests.packaging.conftest import ROOT


def test_the_changelog_has_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{version}]" in changelog
    assert "## [Unreleased]" in changelog
