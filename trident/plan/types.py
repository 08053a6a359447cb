"""Types of fields in a plan: what is declared comes first, then what is known of operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

from trident.errors import FieldError
from trident.fields import Fields

if TYPE_CHECKING:
    from trident.plan.nodes import Node


def typed_outputs(outputs: Fields, inferred: Sequence[str | None]) -> Fields:
    """Output fields with their own types, and where they have none the inferred ones, in order.

    Examples
    --------
    >>> typed_outputs(Fields.of("a int, b, c"), ["long", "string"])
    Fields('a int, b string, c')
    """
    types = chain(inferred, repeat(None))
    return Fields.typed(
        (name, declared or known)
        for (name, declared), known in zip(outputs.types.items(), types, strict=False)
    )


def field_type(node: Node, name: str) -> str:
    """The Spark type of a field where one is needed, as when it leaves a Python stage.

    Raises
    ------
    FieldError
        When it is not known, saying where the field comes from and how to declare it.
    """
    known = node.fields.types[name]
    if known is not None:
        return known
    maker = node
    while before := next((p for p in maker.parents if name in p.fields), None):
        maker = before
    what = f"{maker.origin.call} at {maker.origin}: Spark needs the type of field"
    advice = (
        f'Declare it, as in Fields({name}=str) or "{name} string", by the annotation of what the '
        "function returns, or by the operation's output_types."
    )
    raise FieldError(what, name, (), advice)
