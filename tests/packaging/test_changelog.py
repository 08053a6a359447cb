"""CHANGELOG.md tells of the version that the package has."""

from __future__ import annotations

import trident
from tests.packaging.conftest import ROOT


def test_the_changelog_has_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{trident.__version__}]" in changelog
    assert "## [Unreleased]" in changelog
