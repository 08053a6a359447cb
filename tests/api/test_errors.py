"""Errors keep what they say when they cross a process."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from tests.packaging.conftest import ROOT
from trident.errors import (
    FailedException,
    FieldError,
    PlanError,
    StateUnavailableError,
    TridentError,
)
from trident.states.values import Token

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "trident").glob("**/errors.py"))
    if "spark" not in path.parts or find_spec("pyspark")
]
ERRORS = {
    found
    for name in [*MODULES, "trident.states.errors", "trident.spouts.feeder"]
    for found in vars(importlib.import_module(name)).values()
    if isinstance(found, type) and issubclass(found, TridentError)
}


def samples(error: type[TridentError]) -> dict[str, Any]:
    """What an error's constructor takes: a value of each parameter's type, by name."""
    if error.__init__ is Exception.__init__:
        return {"text": "a text"}
    hints = get_type_hints(error.__init__)
    return {name: sample(kind) for name, kind in hints.items() if name != "return"}


def sample(kind: Any) -> Any:
    if kind in (str, int, bool, float):
        return kind(3)
    if kind is Token:
        return Token(3, 1)
    if get_origin(kind) is Sequence:
        return ("a", "b")
    return "anything" if kind is object else sample(get_args(kind)[0])


@pytest.mark.parametrize("error", sorted(ERRORS, key=lambda error: error.__name__))
class TestEveryError:
    def test_pickles(self, error: type[TridentError]) -> None:
        made = error(*samples(error).values())
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is error
        assert again.args == made.args == tuple(samples(error).values())
        assert str(again) == str(made)

    def test_shows_what_it_was_given(self, error: type[TridentError]) -> None:
        values = samples(error)
        text = str(error(*values.values()))
        given = next(iter(values.values()))
        assert str(given.txid if isinstance(given, Token) else given) in text
        assert "{" not in text.replace("accept_loss={", "")

    def test_may_be_given_its_fields_by_name(self, error: type[TridentError]) -> None:
        values = samples(error)
        if error.__init__ is not Exception.__init__:
            made = error(**values)
            assert made.args == tuple(values.values())
            assert repr(made) == repr(error(*values.values()))


def test_what_is_left_out_is_among_the_arguments() -> None:
    assert StateUnavailableError("redis", "gone").args == ("redis", "gone", "")


def test_errors_are_equal_only_to_themselves() -> None:
    assert PlanError("x") != PlanError("x")
    assert len({PlanError("x"), PlanError("x")}) == 2


class Away(StateUnavailableError):
    """One of the user's, with a constructor of its own."""

    def __init__(self, region: str) -> None:
        super().__init__("geo", f"{region} is down", advice="Wait.")
        self.region = region


def test_a_users_error_below_one_with_fields_shows_its_text() -> None:
    assert str(Away("Texas")) == "geo: Texas is down. Wait."
    assert Away("Texas").args == ("geo", "Texas is down", "Wait.")


def test_a_plan_error_says_what_was_found_allowed_nearest_and_next() -> None:
    error = FieldError("each: unknown field", "wrd", ["id", "word"], "Look again.")
    text = "each: unknown field 'wrd'; there are: id, word. Did you mean 'word'? Look again."
    assert str(error) == text
    assert error.nearest == "word"


def test_a_plan_error_is_a_value_error() -> None:
    assert isinstance(PlanError("x"), ValueError)


def test_an_attribute_of_a_users_error_does_not_change_its_text() -> None:
    error = FailedException("the page was not rendered")
    error.template = "page.html"  # type: ignore[attr-defined]
    assert str(error) == "the page was not rendered"
