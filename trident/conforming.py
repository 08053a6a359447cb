"""Whether what a step makes is of its declared types; the same on every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from trident.errors import EmittedValueError
from trident.fields import Fields
from trident.plan.describe import describe
from trident.plan.nodes import Node
from trident.rows import Row
from trident.value_types import conformed, fits, python_type

Column = Callable[[str], Sequence[Any]]
"""From the name of a field to its values, one for each tuple."""


class Misfit(Exception):
    """A value that isn't of its field's type.

    Parameters
    ----------
    error : EmittedValueError
        What to raise, blamed on the step.
    row : sequence
        What the step made of one tuple, with the value in it: one value for each of its fields.
    """

    def __init__(self, error: EmittedValueError, row: Sequence[Any]) -> None:
        super().__init__(error, row)
        self.error = error
        self.row = row


@dataclass(frozen=True)
class Conforming:
    """Checks the fields that a step makes, and converts what is the same in another form.

    Pickles to where the step runs.

    Parameters
    ----------
    step : str
        The step, for errors.
    names : tuple of str
        The fields it makes.
    kinds : tuple of (str, str)
        Name and type of those that are checked.
    """

    step: str
    names: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]

    def converted(self, column: Column) -> Mapping[str, Sequence[Any]]:
        """The columns that had to be converted, by name.

        Parameters
        ----------
        column : callable
            Gives what the step made for one of `names`.

        Raises
        ------
        Misfit
            For a value of another type than its field's.
        """
        found = {}
        for name, kind in self.kinds:
            values = column(name)
            try:
                right = conformed(self.step, name, kind, values)
            except EmittedValueError as error:
                position = next(n for n, value in enumerate(values) if not fits(kind, value))
                row = tuple(column(name)[position] for name in self.names)
                raise Misfit(error, row) from None
            if right is not values:
                found[name] = right
        return found

    def rows(self, fields: Fields, rows: list[Row]) -> list[Row]:
        """Tuples of `fields`, among which are `names`, with what had to be converted.

        Raises
        ------
        Misfit
            For a value of another type than its field's.
        """
        places = {name: fields.index(name) for name in self.names}
        converted = self.converted(lambda name: list(map(itemgetter(places[name]), rows)))
        for name, values in converted.items():
            at = places[name]
            pairs = zip(rows, values, strict=True)
            rows = [(*row[:at], value, *row[at + 1 :]) for row, value in pairs]
        return rows


def conforming(node: Node) -> Conforming | None:
    """The check of the fields that a step makes; None where none has a type that is checked."""
    made = node.facts.makes
    kinds = tuple((name, kind) for name, kind in made.types.items() if kind and python_type(kind))
    return Conforming(describe(node), made.names, kinds) if kinds else None
