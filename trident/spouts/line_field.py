"""The only field of a spout of lines."""

from __future__ import annotations

from trident.tuples.fields import Fields, FieldsLike


def line_field(spout: str, field: FieldsLike) -> Fields:
    """Return the field of a line.

    Raises ValueError where it isn't one field, or declared as anything but a string.

    Examples
    --------
    >>> line_field("TextFileSpout", "line string").names
    ('line',)
    """
    fields = Fields.of(field)
    if len(fields) != 1:
        found = ", ".join(fields.names) or "none"
        raise ValueError(f'{spout}: a line is one field, found {found}. Write "line string".')
    [name] = fields.names
    if fields.types[name] not in ("string", None):
        found = f"{name} {fields.types[name]}"
        raise ValueError(f'{spout}: a line is a string, found "{found}". Convert it by each(…).')
    return fields
