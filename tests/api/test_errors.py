"""Errors keep what they say when they cross a process."""

from __future__ import annotations

import pickle

import pytest

from trident.errors import (
    DuplicateNameError,
    EmittedValueError,
    FieldError,
    LongOverflowError,
    OperationTypeError,
    PlanError,
    ValueTypeError,
)


@pytest.mark.parametrize(
    "error",
    [
        PlanError("start: nothing"),
        FieldError("each: unknown field", "wrd", ["word"], "Look again."),
        OperationTypeError("each: a function is due, found", "the class Split"),
        DuplicateNameError("newStream: there is already a stream", "s"),
        EmittedValueError("Split()", "emitted 2 values for 1 output fields"),
        ValueTypeError("Sum()", "numbers", "str 'x'"),
        LongOverflowError("Sum()", 2**63),
    ],
)
def test_errors_pickle(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_a_plan_error_says_what_was_found_allowed_nearest_and_next() -> None:
    error = FieldError("each: unknown field", "wrd", ["id", "word"], "Look again.")
    text = "each: unknown field 'wrd'; there are: id, word. Did you mean 'word'? Look again."
    assert str(error) == text
    assert error.nearest == "word"


def test_a_plan_error_is_a_value_error() -> None:
    assert isinstance(PlanError("x"), ValueError)
