"""The plugin for pytest, in runs of tests as users write them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_imports import HEAVY
from trident.testing.servers.process import QUICK, free_port

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def users_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One without servers."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CI", "TRIDENT_TEST_REDIS_URL", QUICK):
        monkeypatch.delenv(name, raising=False)


def run(pytester: pytest.Pytester, tests: str) -> pytest.RunResult:
    pytester.makepyfile(tests)
    return pytester.runpytest("-p", "trident.pytest_plugin", "-p", "no:cacheprovider", "-rA")


SHARED = """
    def test_one(redis_server):
        pass

    def test_other(redis_server):
        pass
"""
OWN = """
    from trident.testing.servers.redis import RedisServer

    def test_own(tmp_path):
        with RedisServer(tmp_path / "redis"):
            pass
"""


def test_tests_of_a_missing_server_are_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    ran = run(pytester, SHARED)
    ran.assert_outcomes(skipped=2)
    ran.stdout.fnmatch_lines("SKIPPED *redis-server is not installed. On Debian: apt-get install*")


def test_so_is_a_test_that_starts_a_server_of_its_own(pytester: pytest.Pytester) -> None:
    run(pytester, OWN).assert_outcomes(skipped=1)


@pytest.mark.parametrize(("tests", "outcome"), [(SHARED, {"errors": 2}), (OWN, {"failed": 1})])
def test_they_fail_in_ci(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tests: str,
    outcome: dict[str, int],
) -> None:
    monkeypatch.setenv("CI", "true")
    ran = run(pytester, tests)
    ran.assert_outcomes(**outcome)
    ran.stdout.fnmatch_lines("*CI is true, so nothing may be skipped: redis-server is not*")
    ran.stdout.no_fnmatch_line("*process.py*")


def test_a_quick_run_skips_them_even_in_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv(QUICK, "1")
    run(pytester, SHARED + OWN).assert_outcomes(skipped=3)


def test_a_promised_server_that_is_not_there_fails_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIDENT_TEST_REDIS_URL", f"redis://:secret@127.0.0.1:{free_port()}")
    ran = run(pytester, SHARED)
    ran.assert_outcomes(errors=2)
    ran.stdout.fnmatch_lines("*TRIDENT_TEST_REDIS_URL promises a server, but none is at 127.0.0.1*")
    ran.stdout.no_fnmatch_line("*secret*")


def test_a_server_is_started_once_for_all_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here one that is no server: what is asked of it is written down."""
    asked = tmp_path / "asked"
    sleep = shutil.which("sleep", path=os.defpath)
    for name, body in {
        "redis-server": f'echo "$@" >> {asked}; exec {sleep} 1000',
        "redis-cli": "echo PONG",
        "sh": 'exec /bin/sh "$@"',
    }.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    ran = run(pytester, SHARED.replace("pass", "assert redis_server.url.startswith('redis://')"))
    ran.assert_outcomes(passed=2)
    assert len(asked.read_text().splitlines()) == 1


def test_testers_are_closed_at_the_end_of_their_test(pytester: pytest.Pytester) -> None:
    ran = run(
        pytester,
        """
        from trident import Count, FeederBatchSpout, TridentTopology

        made = []

        def counting():
            topology = TridentTopology()
            words = topology.newStream("words", FeederBatchSpout("word string"))
            words.groupBy("word").persistentAggregate("sqlite:counts.db", Count(), "count")
            return topology

        def test_two(tester):
            for _ in range(2):
                counted = tester(counting(), stores="memory")
                counted.feed("words", "cow", "cow")
                counted.assert_state("count", {"cow": 2})
                counted.close = lambda: made.append("closed")
                made.append("open")

        def test_after():
            assert made == ["open", "open", "closed", "closed"]
        """,
    )
    ran.assert_outcomes(passed=2)


def test_a_checkpoint_is_a_fresh_folder(pytester: pytest.Pytester) -> None:
    ran = run(
        pytester,
        """
        import os
        import pytest

        @pytest.mark.parametrize("number", [1, 2])
        def test_fresh(checkpoint, number):
            assert isinstance(checkpoint, str)
            assert os.listdir(checkpoint) == []
            open(os.path.join(checkpoint, "log"), "w").close()
        """,
    )
    ran.assert_outcomes(passed=2)


def test_loading_it_loads_no_engine_no_driver_and_not_the_api() -> None:
    heavy = {*HEAVY, "trident.api.topology", "trident.states"} - {"pytest"}
    code = f"import sys, trident.pytest_plugin; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_what_fails_elsewhere_does_not_load_the_api(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_of_something_else():
            assert False

        def test_loaded():
            assert "trident.testing" not in sys.modules
        """
    )
    ran = pytester.runpytest_subprocess("-p", "trident.pytest_plugin", "-p", "no:cacheprovider")
    ran.assert_outcomes(failed=1, passed=1)
