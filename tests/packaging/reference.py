"""Writes docs/reference.md from the docstrings: ``python -m tests.packaging.reference``."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import trident.backends
from tests.packaging.conftest import ROOT
from trident import GroupedStream, Run, Stream, TridentState, TridentTopology
from trident.api.stream import ChainedAggregatorDeclarer, WindowedStream

PAGE = ROOT / "docs" / "reference.md"
HEAD = """\
# Reference

Every public name, with the first sentence of its docstring; `help(name)` has the rest.
`python -m tests.packaging.reference` writes this page, and a test compares it with the code.
"""
PACKAGES = (
    *("trident.backends", "trident.errors", "trident.server", "trident.spark", "trident.states"),
    *("trident.storm", "trident.testing", "trident.transactional"),
    *("trident.batch.events", "trident.drpc.errors", "trident.state_service.errors"),
    *("trident.spouts.kafka", "trident.figures.opentelemetry", "trident.pytest_plugin"),
)
"""The public packages and modules beside `trident` and the stores."""
STORES = [name for name in trident.backends.__all__ if name.islower() and "_" not in name]
OWNERS = (
    TridentTopology,
    Stream,
    WindowedStream,
    GroupedStream,
    ChainedAggregatorDeclarer,
    TridentState,
    Run,
)


def reference() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_chapter(title, names) for title, names in _chapters())])


def _chapters() -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "trident", {name: getattr(trident, name) for name in trident.__all__}
    for owner in OWNERS:
        yield owner.__name__, {call: getattr(owner, call) for call in _calls(owner)}
    for name in PACKAGES:
        module = import_module(name)
        stores = STORES if name == "trident.backends" else []
        yield name, {each: getattr(module, each) for each in public(module) if each not in stores}
    for name in STORES:
        module = import_module(f"trident.backends.{name}")
        yield module.__name__, {each: getattr(module, each) for each in public(module)}


def public(module: ModuleType) -> list[str]:
    """The names of a module: those it lists, else those that it makes itself."""
    own = (
        name
        for name, found in vars(module).items()
        if not name.startswith("_") and getattr(found, "__module__", None) == module.__name__
    )
    return sorted(getattr(module, "__all__", own))


def _calls(owner: type) -> list[str]:
    inherited = {name for base in owner.__bases__ if base in OWNERS for name in dir(base)}
    return [
        name
        for name, found in inspect.getmembers(owner)
        if not name.startswith("_")
        and name not in inherited
        and (callable(found) or (isinstance(found, property) and found.__doc__))
    ]


def _chapter(title: str, names: Mapping[str, Any]) -> str:
    lines = [f"| `{name}` | {sentence(title, name, found)} |" for name, found in names.items()]
    return "\n".join([f"## {title}\n", "| | |", "|---|---|", *lines, ""])


def sentence(title: str, name: str, found: Any) -> str:
    """The first sentence of a docstring, as Markdown.

    Raises
    ------
    ValueError
        Where there is no docstring.
    """
    described = inspect.isclass(found) or inspect.isroutine(found) or isinstance(found, property)
    text = inspect.getdoc(found) if described else _said_of_constant(name)
    if not text:
        raise ValueError(f"{title}.{name} has no docstring, and so no line in the reference")
    first = re.split(r"(?<=[.:])\s+(?=[A-Z]|$)", " ".join(text.split("\n\n")[0].split()))[0]
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", first).replace("``", "`")
    return plain.replace("|", "\\|")


def _said_of_constant(name: str) -> str | None:
    """The docstring below the assignment of a constant, in whichever module makes it."""
    for module in [*sys.modules.values()]:
        if module.__name__.startswith("trident.") and hasattr(module, name):
            body = ast.parse(inspect.getsource(module)).body
            for node, below in pairwise(body):
                if isinstance(node, ast.Assign | ast.AnnAssign):
                    made = node.targets[0] if isinstance(node, ast.Assign) else node.target
                    match made, below:
                        case ast.Name(id=id), ast.Expr(value=ast.Constant(value=str(text))):
                            if id == name:
                                return inspect.cleandoc(text)
    return None


if __name__ == "__main__":
    PAGE.write_text(reference())
