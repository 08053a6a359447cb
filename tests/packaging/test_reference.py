"""The reference has every public name, as the code documents it now."""

from __future__ import annotations

from tests.packaging.reference import PAGE, reference


def test_the_reference_is_what_the_docstrings_say() -> None:
    told = "Write it anew: python -m tests.packaging.reference"
    assert PAGE.read_text() == reference(), told
