"""A client that is made of the description by a generator calls functions and reads states."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

import pytest

from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology

pytest.importorskip("openapi_python_client")

pytestmark = pytest.mark.slow


def test_a_generated_client_calls_functions_and_reads_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 1, ("cat",), ("dog",), ("cat",))
    words = topology.newStream("words", spout).groupBy("word")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "n", name="counts")
    topology.newDRPCStream("upper").map(str.upper, "text")
    with topology.start() as run:
        run.processAllAvailable()
        server = run.serve(port=0)
        described = tmp_path / "openapi.json"
        described.write_bytes(urlopen(f"{server.url}/openapi.json").read())
        made = tmp_path / "made_client"
        command = "generate --meta none --path".split()
        subprocess.run(
            [
                *(sys.executable, "-m", "openapi_python_client", *command),
                *(described, "--output-path", made),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        api = "made_client.api.default"
        call_function = import_module(f"{api}.call_function")
        get_value = import_module(f"{api}.get_value")
        types = import_module("made_client.types")
        with import_module("made_client").Client(base_url=server.url) as client:
            args = types.File(payload=BytesIO("the cat ü🐄".encode()))
            answer = call_function.sync(client=client, function="upper", body=args)
            assert answer == [["THE CAT Ü🐄"]]
            assert get_value.sync(client=client, name="counts", key="cat").value == 2
