"""One casing a call: camelCase is Trident's and PySpark's vocabulary, snake_case is all else."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, get_overloads

from tests.packaging.public_names import PACKAGES, STORES, public

CAMEL, SNAKE = re.compile("[a-z]+[A-Z]"), re.compile("[a-z]+_[a-z]")
NEED_SPARK = {"trident.spark"}


def owners() -> Iterator[tuple[str, Any]]:
    """Each public class and function, by its name."""
    stores = [f"trident.backends.{name}" for name in STORES]
    for package in {"trident", *PACKAGES, *stores} - NEED_SPARK:
        module = import_module(package)
        for name in public(module):
            yield f"{package}.{name}", getattr(module, name)


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """What a class and its bases of ours have that is public."""
    for base in owner.__mro__:
        if base.__module__.startswith("trident"):
            yield from ((name, found) for name, found in vars(base).items() if name[0] != "_")


def parameters(call: Callable[..., Any]) -> Iterator[list[str]]:
    """Those of each signature of a call."""
    for each in (call, *get_overloads(getattr(call, "__func__", call))):
        try:
            yield [*inspect.signature(each).parameters]
        except (TypeError, ValueError):  # one of Python's own constructors
            yield []


def calls() -> Iterator[tuple[str, list[str]]]:
    for name, owner in owners():
        if callable(owner):
            yield from ((name, given) for given in parameters(owner))
        for member, found in members(owner) if inspect.isclass(owner) else ():
            call = getattr(found, "__func__", found)
            if inspect.isfunction(call):
                yield from ((f"{name}.{member}", given) for given in parameters(call))


def test_the_parameters_of_a_call_have_one_casing() -> None:
    mixed = {
        name
        for name, given in calls()
        if any(map(CAMEL.match, given)) and any(map(SNAKE.match, given))
    }
    # Storm has some of their parameters.
    assert mixed == {"trident.backends.StateSpec", "trident.TridentTopology.join"}


def test_a_word_has_one_casing_in_all_calls_and_classes() -> None:
    words = {each for _, given in calls() for each in given}
    for name, owner in owners():
        words.add(name.rpartition(".")[2])
        words |= {member for member, _ in members(owner)} if inspect.isclass(owner) else set()
    in_camel = {
        re.sub("_([a-z])", lambda found: found[1].upper(), each) for each in words if "_" in each
    }
    assert in_camel & {each for each in words if CAMEL.match(each)} == set()
