"""What makes the configuration of a store invalid."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def check_store(store: object, problems: Mapping[str, bool]) -> None:
    """Raise ValueError with the first of `problems` that is true of `store`."""
    for problem, is_true in problems.items():
        if is_true:
            raise ValueError(f"{type(store).__name__}: {problem}")


def choice_problem(name: str, value: str, allowed: Collection[str]) -> dict[str, bool]:
    """Return the problem of a parameter that has none of its `allowed` values."""
    return {f"{name} {value!r} is unknown; there are: {', '.join(allowed)}": value not in allowed}


def timeout_problem(seconds: float) -> dict[str, bool]:
    """Return the problem of a time-out that no answer could meet."""
    return {f"timeout {seconds} is not above 0 seconds": not seconds > 0}
