"""`examples/fastapi_app.py`, as it is started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.drpc.asking import until

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
PATIENCE = 60


def test_the_application_answers_in_its_own_way_and_as_a_drpc_server(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "fastapi_app.py"), "--port", "0"]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as application:
        try:
            assert application.stderr is not None
            lines = iter(application.stderr.readline, "")
            found = next(filter(None, (re.search(r"http://\S+", line) for line in lines)))

            def told(path: str) -> Any:
                with urlopen(f"{found[0]}{path}", timeout=PATIENCE) as response:
                    return json.loads(response.read())

            until(lambda: told("/storm/api/v1/state")["states"][0]["txid"] == 3)
            assert told("/words?text=cat%20dog") == {"words": ["cat", "dog"], "count": 4}
            assert told("/storm/drpc/words/cat%20dog") == [[4]]
            assert told("/storm/api/v1/state/counts/cat")["value"] == 2
            assert told("/storm/api/v1/state/counts/cat?read=latest")["read"] == "latest"
        finally:
            application.send_signal(signal.SIGINT)
            rest = application.stderr.read() if application.stderr else ""
    assert application.returncode in (0, -signal.SIGINT), rest
    assert "Traceback" not in rest.replace("KeyboardInterrupt", ""), rest
