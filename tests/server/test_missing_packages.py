"""Without a package of the extra it is said what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVER = (
    "from trident import TridentTopology as T; from trident.server import DRPCServer; "
    "DRPCServer(T(), {})"
)
THRIFT = """
from trident import TridentTopology
from trident.server import DRPCServer
topology = TridentTopology()
topology.newDRPCStream("f").map(str.upper, "text")
DRPCServer(topology, port=None, thrift_port=0).start()
"""
CLIENT = "from trident import DRPCClient; DRPCClient({!r})"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("starlette", SERVER),
        ("uvicorn", SERVER),
        ("prometheus_client", SERVER),
        ("thrift", THRIFT),
        ("urllib3", CLIENT.format("http://localhost")),
        ("urllib3", CLIENT.format("thrift://localhost")),
        ("thrift", CLIENT.format("thrift://localhost")),
        ("prometheus_client", "import trident.figures.prometheus"),
    ],
)
def test_it_is_said_what_to_install(package: str, program: str) -> None:
    without = f"import sys; sys.modules[{package!r}] = None\n{program}"
    ran = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1
    assert 'pip install "trident-spark[drpc]"' in last
    assert package in last
