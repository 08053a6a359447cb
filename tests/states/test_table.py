"""Between a map state and its store: layers that know nothing of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import trident.states.table
from tests.packaging.test_order import imports

TABLE = Path(trident.states.table.__file__).parent
LAYERS = ["cache", "named_keys", "split", "upgrading"]


def siblings(name: str) -> set[str]:
    """The modules of the package that a module of it imports."""
    own = "trident.states.table."
    found = imports()[own + name]
    return {module.removeprefix(own) for module in found if module.startswith(own)}


def test_every_module_of_the_package_is_an_interface_a_layer_an_adapter_or_the_builder() -> None:
    named = {"__init__", "table", "build", "adapters", *LAYERS}
    assert {path.stem for path in TABLE.glob("*.py")} == named


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_knows_no_other_layer_and_no_adapter(layer: str) -> None:
    assert siblings(layer) <= {"table"}


def test_an_adapter_knows_no_layer() -> None:
    assert siblings("adapters") <= {"table"}
