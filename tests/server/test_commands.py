"""``python -m trident serve`` and ``drpc``."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.drpc.asking import PATIENCE
from tests.server import served
from trident import Count, FeederBatchSpout, TridentTopology
from trident.cli.main import main
from trident.cli.serve import listening
from trident.server.server import DRPCServer


def test_a_process_of_its_own_answers_what_a_run_elsewhere_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVED_DATABASE", str(tmp_path / "counts.db"))
    access = tmp_path / "access.json"
    access.write_text(json.dumps({"tokens": {"ann": "s3cret"}}))
    command = [sys.executable, "-m", "trident", "serve", "tests.server.served:topology"]
    options = ["--port", "0", "--thrift-port", "0", "--access", str(access)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("serving count: http://127.0.0.1:")
            assert said.endswith("; Ctrl-C stops\n")
            address = said.split()[2].removeprefix("http://").removesuffix("/,")
            with served.topology().start():
                served.spout.feed([("the cat the",)], PATIENCE)
            assert main(["drpc", address, "count", "the"]) == 1
            assert "needs a token that this server knows" in capsys.readouterr().err
            monkeypatch.setenv("TRIDENT_TOKEN", "s3cret")
            assert main(["drpc", address, "count", "the"]) == 0
            assert capsys.readouterr().out == "[[2]]\n"
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        ({"port": 0}, "serving count: {url}/"),
        ({"port": None, "thrift_port": 0}, "serving count: Thrift on {thrift}"),
        ({"port": 0, "thrift_port": 0}, "serving count: {url}/, Thrift on {thrift}"),
    ],
)
def test_a_server_says_where_it_listens_and_nowhere_else(
    ports: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVED_DATABASE", str(tmp_path / "counts.db"))
    with DRPCServer(served.topology(), **ports) as server:
        assert listening(server) == said.format(url=server.url, thrift=server.thrift_port)


def test_a_server_of_states_only_says_so(tmp_path: Path) -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FeederBatchSpout("word")).groupBy("word")
    words.persistentAggregate(f"sqlite:{tmp_path}/counts.db", Count(), "count")
    with DRPCServer(topology, port=0) as server:
        assert listening(server) == f"serving states: {server.url}/"


@pytest.fixture
def answering() -> Any:
    topology = TridentTopology()
    topology.newDRPCStream("upper").map(str.upper, "text")
    with DRPCServer(topology, port=0, thrift_port=0) as server:
        yield server


def test_drpc_prints_the_answer(
    answering: DRPCServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    http, thrift = f"127.0.0.1:{answering.port}", f"thrift://127.0.0.1:{answering.thrift_port}"
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe"))
    assert main(["drpc", http, "upper", "cat"]) == 0
    assert main(["drpc", f"127.0.0.1:1,{thrift}", "upper"]) == 0
    assert main(["drpc", thrift, "upper", "-"]) == 0
    assert capsys.readouterr().out == '[["CAT"]]\n[[""]]\n[["FROM A PIPE"]]\n'


def test_what_goes_wrong_is_one_line(
    answering: DRPCServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drpc", f"127.0.0.1:{answering.port}", "uper", "cat"]) == 1
    assert main(["drpc", "127.0.0.1:1", "upper"]) == 1
    assert main(["drpc", "ftp://here", "upper"]) == 2
    unknown, away, wrong = capsys.readouterr().err.splitlines()
    assert unknown.endswith("no DRPC function 'uper'; there are: upper. Did you mean 'upper'?")
    assert "no DRPC server answers: 127.0.0.1:1: " in away
    assert "no address of a server" in wrong


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tests.server.served"], "is written module:name"),
        (["tests.drpc.nowhere:topology"], "can't be imported: No module named"),
        ([".served:topology"], "is written module:name"),
        (["tests.server.served:topology", "--host", ".."], "can't be had"),
        (["tests.server.served:nowhere"], "can't be imported: module"),
        (["tests.server.served:nothing"], "is no TridentTopology, nor a function"),
        (["tests.server.served:topology", "--access", "/nowhere"], "--access can't be read"),
        (["tests.server.served:topology", "--port", "70000"], "a number from 0 to 65535"),
        (["tests.server.served:topology", "--timeout", "0"], "timeout is a number above 0"),
        (["tests.server.served:topology", "--certfile", "/nowhere"], "no certificate can be read"),
    ],
)
def test_serve_refuses_what_it_cannot_use(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SERVED_DATABASE", str(tmp_path / "counts.db"))
    assert main(["serve", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ('{"tokens": {"ann": 5}}', "the token of each user is a str"),
        ('{"tokens": ["s3cret"]}', "the token of each user is a str"),
        ('{"allow": {"count": 5}}', "the users of each function are a list"),
        ('{"allow": {"count": "ann"}}', "the users of each function are a list"),
    ],
)
def test_serve_refuses_a_file_of_access_that_holds_something_else(
    held: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SERVED_DATABASE", str(tmp_path / "counts.db"))
    access = tmp_path / "access.json"
    access.write_text(held)
    assert main(["serve", "tests.server.served:topology", "--access", str(access)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert "s3cret" not in line


@pytest.mark.parametrize(("host", "token"), [("..", "t"), ("127.0.0.1", "t\nu")])
def test_drpc_refuses_what_no_request_can_have(
    host: str,
    token: str,
    answering: DRPCServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRIDENT_TOKEN", token)
    assert main(["drpc", f"{host}:{answering.port}", "upper"])
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_checkpoint_of_serve_may_be_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVED_DATABASE", str(tmp_path / "counts.db"))
    url = "s3://bucket/words?endpoint=http://127.0.0.1:1&skip_signature=true"
    assert main(["serve", "tests.server.served:topology", "--checkpoint", url]) == 75
    assert "s3://bucket/words at http://127.0.0.1:1" in capsys.readouterr().err
