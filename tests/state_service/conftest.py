"""Each test logs its failures, whatever tests before it have logged."""

from __future__ import annotations

import pytest

from trident.server.failure_log import FAILURES


@pytest.fixture(autouse=True)
def unlogged() -> None:
    """Nothing was logged in the last second."""
    FAILURES.forget()
