"""What a command names as ``module:name``, found from the current folder."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from trident.api.topology import TridentTopology
from trident.states.errors import TridentError, UsageError
from trident.states.secrets import masked


def named(name: str) -> Any:
    """What a module has under a name."""
    module, _, attribute = name.partition(":")
    if not (module and attribute) or module.startswith("."):
        advice = "As in words:topology."
        raise UsageError("the topology is written module:name, found", name, advice=advice)
    if "" not in sys.path:
        sys.path.insert(0, "")
    what = f"{name} can't be imported"
    looked = "It is looked for from the current folder."
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _raised(what, error) from error  # something that the module itself imports
        raise UsageError(f"{what}: {error}", advice=looked) from error
    except TridentError:
        raise
    except Exception as error:
        raise _raised(what, error) from error
    try:
        return getattr(found, attribute)
    except AttributeError as error:
        raise UsageError(f"{what}: {error}", advice=looked) from error


def named_topology(name: str) -> TridentTopology:
    """The topology that a module has under a name, or that a function without arguments returns."""
    found = named(name)
    is_made = isinstance(found, TridentTopology) or not callable(found)
    made = found if is_made else _called(name, found)
    if not isinstance(made, TridentTopology):
        what = f"{name} is no TridentTopology, nor a function that returns one, but a"
        raise UsageError(what, type(made).__name__)
    return made


def _called(name: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except TridentError:
        raise
    except Exception as error:
        raise _raised(f"{name} returns no topology", error) from error


def _raised(what: str, raised: Exception) -> UsageError:
    """What a module, or a function in it, has raised, on one line: the exception, and where."""
    error = raised
    if type(raised).__module__.startswith("pyspark."):
        from trident.spark.java import not_started

        error = not_started(raised) or raised
    text = masked(" ".join(f"{type(error).__name__}: {error}".split())).rstrip(".")
    passed = {__file__, importlib.__file__}
    own = [
        f"{frame.filename}, line {frame.lineno}"
        for frame in traceback.extract_tb(raised.__traceback__)
        if frame.filename not in passed and not frame.filename.startswith("<")
    ]
    return UsageError(f"{what}: {text}", advice=f"It was raised in {own[-1]}." if own else "")
