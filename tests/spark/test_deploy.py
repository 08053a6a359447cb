"""docs/deploy.md: its lines run, on a cluster whose workers lack the library, and as a pod does."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
import yaml
from packaging.requirements import Requirement

from tests.packaging.conftest import ROOT
from tests.spark.cluster import cluster
from trident.backends.urls import state_from_url
from trident.testing.servers.process import wait_until
from trident.testing.servers.promised import Served

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs" / "deploy.md").read_text()
STORE = "redis://cache:6379/0?prefix=words"
PACKED = {
    "-m venv packed": "-m venv --without-pip packed",
    "packed/bin/pip install": "installed packed",
    "/src/trident-spark": "trident-spark",
    "-m venv_pack": "-m venv_pack --compress-level 0",
}
"""How an environment is filled with copies of what is installed here, instead of downloads, and
packed without the time that compressing takes."""
PATIENCE = 400.0


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```\n", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs of the page, each under its name."""
    for program in blocks("python"):
        name, _, text = program.partition("\n")
        (tmp_path / name.removeprefix("# ")).write_text(text)
    return tmp_path


@pytest.fixture
def store(redis_server: Served) -> str:
    """What stands for the page's store: the URL of a server of ours, with a prefix of its own."""
    return f"{redis_server.url}?prefix={uuid4().hex}"


def counts(store: str) -> list[object]:
    state = state_from_url(store).makeState()
    try:
        return list(state.multiGet([("the",), ("cow",), ("cat",)]))
    finally:
        state.close()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without any package."""
    folder = tmp_path_factory.mktemp("pythons") / "bare"
    venv.create(folder)
    return folder / "bin" / "python"


def test_a_packed_environment_runs_on_workers_that_lack_the_library(
    folder: Path, bare: Path, store: str
) -> None:
    asking, packing, submitting = blocks("sh")
    with cluster(folder) as master:
        places = {
            "spark://master:7077": master,
            STORE: store,
            "/usr/bin/python3": str(bare),
        }
        asked = sh(asking, places, folder)
        assert asked.returncode == 1, asked.stderr
        [problem] = re.findall(r"^problem  Spark's workers.*", asked.stdout, re.MULTILINE)
        assert " lack pyarrow, numpy, orjson, cachetools, trident, redis. Run there: " in problem
        assert f'{bare} -m pip install "trident-spark[redis]==' in problem

        sh(packing, PACKED, folder).check_returncode()
        submitted = sh(submitting, places, folder)
        assert submitted.returncode == 0, submitted.stderr
    assert "lines: stopped after batch 2" in submitted.stdout
    assert counts(store) == [2, 1, 1]


def sh(lines: str, places: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run lines of the page where other names stand for its places.

    What they install is copied from this environment, which has it already.
    """
    for name, place in places.items():
        lines = lines.replace(name, place)
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    program = f'#!/bin/sh\nexec {sys.executable} -m {__name__} "$@"\n'
    (tools / "installed").write_text(program)
    (tools / "installed").chmod(0o700)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: os.environ[name] for name in os.environ if name != "PYSPARK_PYTHON"}
    return subprocess.run(
        ["sh", "-e", "-c", lines],
        cwd=folder,
        env={**environment, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def install(folder: Path, names: list[str]) -> None:
    """Copy distributions, and what they need, into a virtual environment."""
    [packages] = folder.glob("lib/*/site-packages")
    for found in needed(names, {}).values():
        if found.name == "trident-spark":  # installed as a link to the checkout
            shutil.copytree(ROOT / "trident", packages / "trident")
        else:
            for file in found.files or ():
                if not {"..", "include", "tests"} & {*file.parts}:  # nothing runs these
                    (packages / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file.locate(), packages / file)


def needed(names: list[str], known: dict[str, Distribution]) -> dict[str, Distribution]:
    for name in names:
        asked = Requirement(name)
        found = known[asked.name] = distribution(asked.name)
        for each in map(Requirement, found.requires or ()):
            wanted = [{"extra": extra} for extra in asked.extras] or [{"extra": ""}]
            applies = each.marker is None or any(map(each.marker.evaluate, wanted))
            if applies and each.name not in known:
                needed([str(each).partition(";")[0]], known)
    return known


def test_a_pod_of_the_manifest_is_found_healthy_and_ends_at_sigterm(
    folder: Path, store: str
) -> None:
    secret, deployment = yaml.safe_load_all(blocks("yaml")[0])
    asked, template = deployment["spec"], deployment["spec"]["template"]
    assert asked["replicas"] == 1
    assert asked["selector"]["matchLabels"] == template["metadata"]["labels"]
    spec: dict[str, Any] = template["spec"]
    [container] = spec["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]
    [port] = container["ports"]
    with pod(container, secret["stringData"], store, folder) as process, closing_of(process):
        address = next(line for line in lines(process) if line.startswith("serving "))
        url = re.sub(r"^serving .*: (http://[^:]*:\d+)/.*", r"\1", address)
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = container[kind]
            assert probe["httpGet"]["port"] == port["name"]
            # A kubelet asks for the address of the pod.
            request = Request(f"{url}{probe['httpGet']['path']}", headers={"Host": "10.1.2.3:3774"})
            with urlopen(request, timeout=probe["timeoutSeconds"]) as answer:
                assert answer.status == 200
        wait_until(lambda: counts(store) == [2, 1, 1], PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert process.wait(spec["terminationGracePeriodSeconds"]) == 0
        *_, ended = lines(process)
        assert ended == "lines: stopped after batch 2"


def pod(
    container: dict[str, Any], secret: dict[str, str], store: str, folder: Path
) -> subprocess.Popen[str]:
    """What Kubernetes starts of a container, here: the image's program with other arguments."""
    [image] = blocks("dockerfile")
    [entry] = re.findall(r"^ENTRYPOINT (.*)$", image, re.MULTILINE)
    tini, end, python, *program = json.loads(entry)
    assert (tini, end, python) == ("tini", "--", "python")
    variables = {name: value.replace(STORE, store) for name, value in secret.items()}
    given = [
        re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word).replace("3774", "0")
        for word in container["args"]
    ]
    return subprocess.Popen(
        [sys.executable, *program, *given],
        cwd=folder,
        env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def closing_of(process: subprocess.Popen[str]) -> Iterator[None]:
    """Let no failure of the test leave it running, with its JVM."""
    try:
        yield
    finally:
        process.kill()


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    return (line.rstrip("\n") for line in process.stdout)


if __name__ == "__main__":
    place, *wanted = sys.argv[1:]
    install(Path(place), wanted)
