"""Ports of servers, where tests run in several processes."""

from __future__ import annotations

import pytest

from trident.testing.servers.process import free_port


def test_no_two_workers_find_the_same_port_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    found: list[set[int]] = []
    for worker in ("gw0", "gw1", "gw2"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        found.append({free_port() for _ in range(200)})
    assert len(set.union(*found)) == sum(map(len, found))
