"""What a command names as ``module:name``, found from the current folder."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from trident.states.errors import UsageError
from trident.topology import TridentTopology


def named(name: str) -> Any:
    """What a module has under a name.

    Raises
    ------
    UsageError
        Where there is none.

    Examples
    --------
    >>> named("math:tau")
    6.283185307179586
    """
    module, _, attribute = name.partition(":")
    if not (module and attribute) or module.startswith("."):
        advice = "As in words:topology."
        raise UsageError("the topology is written module:name, found", name, advice=advice)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        advice = "It is looked for from the current folder."
        raise UsageError(f"{name} can't be imported: {error}", advice=advice) from error


def named_topology(name: str) -> TridentTopology:
    """The topology that a module has under a name, or that a function without arguments returns.

    Raises
    ------
    UsageError
        Where there is none.
    """
    found = named(name)
    made = found if isinstance(found, TridentTopology) or not callable(found) else found()
    if not isinstance(made, TridentTopology):
        what = f"{name} is no TridentTopology, nor a function that returns one, but a"
        raise UsageError(what, type(made).__name__)
    return made
