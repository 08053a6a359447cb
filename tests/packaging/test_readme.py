"""The README and the quickstart: their code is the example's, and prints what they show."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.packaging.conftest import ROOT
from trident.plan.guarantee import _TABLE
from trident.plan.nodes import Kind
from trident.states.values import StateType
from trident.testing.servers.promised import Served

README = (ROOT / "README.md").read_text()
START = (ROOT / "docs" / "quickstart.md").read_text()


def blocks(language: str, page: str = START) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run(code: str, folder: Path) -> str:
    """Run code as a user would, in an empty folder."""
    script = folder / "quickstart.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def quickstart() -> str:
    return blocks("python", README)[0]


def test_the_readme_fits_two_screens() -> None:
    assert len(README.splitlines()) <= 105


def test_the_readme_shows_what_the_quickstart_begins_with(quickstart: str) -> None:
    assert blocks("python")[0] == quickstart
    assert blocks("text") == blocks("text", README)


def test_the_quickstart_is_the_example(quickstart: str) -> None:
    assert (ROOT / "examples" / "quickstart.py").read_text().endswith(f"\n\n{quickstart}")


def test_the_quickstart_has_at_most_15_lines_of_code(quickstart: str) -> None:
    assert len([line for line in quickstart.splitlines() if line.strip()]) <= 15
    assert ast.parse(quickstart)


def test_the_quickstart_prints_what_it_says(quickstart: str, tmp_path: Path) -> None:
    assert run(quickstart, tmp_path) in blocks("text")


def test_the_quickstart_answers_curl(quickstart: str, tmp_path: Path) -> None:
    (serve, wait) = re.findall(r"add `(run\.serve\(\))` and `(run\.\w+\(\))`", START)[0]
    script = tmp_path / "quickstart.py"
    served = serve.replace("()", "(port=0)")
    script.write_text(f"{quickstart}    print({served}.url, flush=True)\n    {wait}\n")
    with subprocess.Popen(
        [sys.executable, script.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        try:
            assert serving.stdout is not None
            assert serving.stdout.readline() in blocks("text")
            url = serving.stdout.readline().strip()
            (asking,) = [block for block in blocks("sh") if "curl" in block]
            for line in asking.splitlines():
                command, _, answer = line.partition("#")
                assert "http://localhost:3774/" in command
                told = subprocess.run(
                    [*shlex.split(command.replace("http://localhost:3774", url)), "-s"],
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=60,
                )
                assert told.stdout == answer.strip()
        finally:
            serving.kill()


@pytest.mark.spark
def test_one_line_changes_for_spark(quickstart: str, tmp_path: Path) -> None:
    changed, shown = (
        re.findall(r"`(with topology\.start\(trident\.spark.+\) as run:)`", page)
        for page in (README, START)
    )
    assert changed == shown
    [changed] = changed
    on_spark = re.sub(r"with topology\.start\(\).*", changed, quickstart)
    assert on_spark != quickstart
    assert run(on_spark, tmp_path) in blocks("text")


def test_the_tested_topology_counts_though_its_driver_crashes(tmp_path: Path) -> None:
    tested = blocks("python")[-1]
    assert len(tested.partition("\n\ntester")[2].splitlines()) <= 5
    assert run(f"{tested}print(tester.state('count'))", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["quickstart.py"]


def test_redis_counts_and_another_process_finds_it(redis_server: Served, tmp_path: Path) -> None:
    import redis

    url, ours = "redis://localhost:6379/0?prefix=words", f"readme-{uuid4().hex}"
    counting, asking = blocks("python")[1:3]
    assert url in counting
    assert url in asking
    there = f"{redis_server.url}/0?prefix={ours}"
    assert run(counting.replace(url, there), tmp_path) == ""
    (told,) = re.findall(r"# (\[.+\])", asking)
    assert run(asking.replace(url, there), tmp_path) == f"{told}\n"
    with redis.Redis.from_url(redis_server.url) as client:
        client.delete(*client.scan_iter(match=f"{ours}*"))


def test_what_is_in_kafka_is_counted_once(kafka_broker: Served, tmp_path: Path) -> None:
    place, ours = kafka_broker.url.removeprefix("kafka://"), f"readme-{uuid4().hex}"
    counting, _ = blocks("python")[3:]
    counting = counting.replace("localhost:9092", place).replace('"lines"', f'"{ours}"')
    [writing] = [line for line in "".join(blocks("sh")).splitlines() if line.endswith("lines")]
    _, *command = shlex.split(f"{writing.removesuffix('lines')}{ours} --servers {place}")
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, timeout=60)
    (told,) = re.findall(r"# (\[.+\])", counting)
    for _ in range(2):
        assert run(counting, tmp_path) == f"{told}\n"


def test_the_own_map_prints_what_the_page_of_states_says(tmp_path: Path) -> None:
    examples, page = ROOT / "examples", (ROOT / "docs" / "states.md").read_text()
    for example in examples.glob("custom_backing_map*.py"):
        (tmp_path / example.name).write_text(example.read_text())
    printed = run((examples / "custom_backing_map.py").read_text(), tmp_path)
    assert printed in blocks("text", page)


def test_the_table_of_guarantees_is_the_one_in_force() -> None:
    page = (ROOT / "docs" / "states.md").read_text()
    rows = re.findall(r"^\| (?:maybe|the same|none).*", page, re.MULTILINE)
    told = [cell.strip(" *") for row in rows for cell in row.split("|")[2:5]]
    sources: tuple[Kind, ...] = ("opaque", "transactional", "non-transactional")
    maps = (StateType.OPAQUE, StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL)
    assert told == [_TABLE[source, kept][0] for source in sources for kept in maps]


def test_every_link_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"]
    for page in pages:
        for target, heading in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not heading or heading in anchors(there), f"{page.name}: {target}#{heading}"


def test_the_readme_leads_to_every_page() -> None:
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - {"docs/index.md"}
    listed = README[README.index("## Where to go on") :]
    assert pages == {*re.findall(r"\]\((docs/[\w-]+\.md)\)", listed)}


def anchors(page: Path) -> set[str]:
    """What a link to a heading of a page may end with, as GitHub and others make it."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_number_in_brackets_is_a_source_and_the_other_way_round() -> None:
    text, _, sources = (ROOT / "docs" / "compare.md").read_text().partition("\n## Sources\n")
    listed = re.findall(r"^(\d+)\. .*\(?https?://", sources.replace("\n   ", " "), re.MULTILINE)
    assert len(listed) > 10
    assert {*re.findall(r"\[(\d+)\]", text)} == {*listed}


def test_every_make_target_of_the_pages_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in ("README.md", "CONTRIBUTING.md", "docs/installing.md"):
        for target in re.findall(r"make ([a-z]+)", "".join(blocks_of_code(page))):
            assert target in targets, f"{page}: make {target}"


def blocks_of_code(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(r"`{3}sh\n.*?`{3}", text, re.DOTALL) + re.findall(r"`make [^`]+`", text)
