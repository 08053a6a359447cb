"""Ports of servers, for which several processes look."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from trident.testing.servers.process import free_port

PROGRAM = """
import random
random.sample = lambda ports, count: list(ports)
from trident.testing.servers.process import free_port
print(free_port())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there a port is only looked at")
def test_nobody_else_finds_the_same_port_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "sample", lambda ports, count: list(ports))
    mine = {free_port(), free_port()}
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert len(mine | {int(found.stdout)}) == 3
