"""`examples/drpc_server.py` and `examples/drpc_client.py`, as they are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
PATIENCE = 60


def asked(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / "drpc_client.py"), *arguments]
    return subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE
    )


def test_the_server_counts_and_the_client_asks_it(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "drpc_server.py"), "--port", "0"]
    options = ["--thrift-port", "0", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        [*command, *options], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            words = server.stdout.readline().split()
            url, port = words[0], words[-1]
            with urlopen(f"{url}cat%20dog", timeout=PATIENCE) as response:
                assert response.read() == b"[[4]]"
            address = url.removeprefix("http://").removesuffix("/drpc/words/")
            done = asked(f"127.0.0.1:1,{address},thrift://127.0.0.1:{port}", "cat dog", "the")
            assert (done.returncode, done.stdout) == (0, "cat dog: 4\nthe: 6\n"), done.stderr
            assert asked(f"thrift://127.0.0.1:{port}", "man").stdout == "man: 1\n"
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == -signal.SIGINT
    away = asked(address, "cat")
    assert away.returncode == 1
    assert away.stderr.startswith(f"no DRPC server answers: {address}: ")
