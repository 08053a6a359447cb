"""The type of a field, for an engine that can't do without."""

from __future__ import annotations

from trident.errors import FieldError
from trident.plan.nodes import Node


def field_type(node: Node, name: str) -> str:
    """The Spark type of a field where one is needed, as when it leaves a Python stage.

    Where it is not known, the error says where the field comes from and how to declare it.
    """
    known = node.fields.types[name]
    if known is not None:
        return known
    maker = node
    while name not in maker.facts.makes and (
        before := next((each for each in maker.parents if name in each.fields), None)
    ):
        maker = before
    what = f"{maker.origin.call} at {maker.origin}: Spark needs the type of field"
    advice = (
        f'Declare it, as in Fields({name}=str) or "{name} string", by the annotation of what the '
        "function returns, or by the operation's output_types."
    )
    raise FieldError(what, name, (), advice)
