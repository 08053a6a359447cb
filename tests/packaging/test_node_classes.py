"""Few files outside the plan know kinds of step; all others ask a node, or the job."""

from __future__ import annotations

import re

from tests.packaging.conftest import ROOT
from tests.plan.node_classes import node_classes

KNOW = {
    "trident/api/stream.py",  # makes them
    "trident/api/topology.py",  # makes them
    "trident/job/compile.py",  # has a rule for each
    "trident/job/passes.py",  # decides what concerns several
    "trident/testing/substitution.py",  # replaces sources, adds updates that record
}


def test_no_other_file_outside_the_plan_names_a_kind_of_step() -> None:
    kinds = {each.__name__ for kind in node_classes() for each in kind.__mro__[:-1]}
    word = re.compile(rf"\b({'|'.join(sorted(kinds - {'Node', 'ABC'}))})\b")
    paths = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "trident").rglob("*.py")}
    outside = {name: path for name, path in paths.items() if not name.startswith("trident/plan/")}
    assert {name for name, path in outside.items() if word.search(path.read_text())} == KNOW
