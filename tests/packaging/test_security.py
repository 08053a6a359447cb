"""What SECURITY.md says of values of others is so in the code."""

from __future__ import annotations

import re

from tests.packaging.conftest import ROOT

RUNS = re.compile(r"\b(?:pickle|cloudpickle|marshal)\.loads?\(|(?<![.\w])(?:eval|exec)\(|Unpickler")


def test_only_the_serializer_that_is_named_so_unpickles_what_is_stored() -> None:
    """Suites and chaos unpickle what they have pickled themselves."""
    own = re.compile(r"states/testing/|trident/chaos/|backends/rows/conformance.py")
    tops = [ROOT / name for name in ("trident", "states", "backends")]
    paths = [path for top in tops for path in top.rglob("*.py") if RUNS.search(path.read_text())]
    found = {str(path.relative_to(ROOT)) for path in paths}
    assert {path for path in found if not own.search(path)} == {"states/serializers.py"}
