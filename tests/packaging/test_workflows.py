"""The workflows: whose code they run, what they may do, and the Makefile's targets in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job.get("steps", [])]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflows:
    def test_an_action_is_named_by_its_commit_and_version(self, workflow: Path) -> None:
        used = re.findall(r"uses: (.+)", workflow.read_text())
        assert used
        for action in used:
            pinned = re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
            assert pinned or action.startswith("./.github/"), action

    def test_a_job_has_the_permissions_that_it_names_and_ends_in_time(self, workflow: Path) -> None:
        read = yaml.safe_load(workflow.read_text())
        assert read["permissions"] == {}
        for name, job in read["jobs"].items():
            assert job["permissions"], name
            assert "uses" in job or job["timeout-minutes"] <= 90, name

    def test_a_command_is_a_target_of_the_makefile(self, workflow: Path) -> None:
        for step in steps(workflow):
            command = step.get("run", "make help")
            if command.startswith("make "):
                words = re.sub(r" >\S+$", "", command.removeprefix("make ")).split()
                assert {word for word in words if "=" not in word} <= {*TARGETS}, command
            else:
                assert command.startswith("gh release create "), command

    def test_no_command_has_an_expression_in_it(self, workflow: Path) -> None:
        assert [step["run"] for step in steps(workflow) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_questions_that_have_names(form: Path) -> None:
    read = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= read.keys()
    asked = [element for element in read["body"] if element["type"] != "markdown"]
    assert len({element["id"] for element in asked}) == len(asked) > 0
    for element in asked:
        assert element["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert element["attributes"]["label"]
