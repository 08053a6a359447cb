"""The driver, imported when a map is first used, and statements with names in them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from trident.states.errors import MissingDriverError


def driver() -> Any:
    """Return the module `psycopg`."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingDriverError("state in PostgreSQL", "postgres", str(error)) from None
    return psycopg


def statement(text: str, **names: str) -> str:
    """Return a statement for parameters, with `names` quoted where `text` has them in braces."""
    # Where there are parameters the driver takes a % for the beginning of one.
    return definition(text, **{name: value.replace("%", "%%") for name, value in names.items()})


@lru_cache(1024)
def definition(text: str, **names: str) -> str:
    """Return the same for a statement that takes no parameters."""
    sql = driver().sql
    quoted = {name: sql.Identifier(value) for name, value in names.items()}
    composed: str = sql.SQL(text).format(**quoted).as_string()
    return composed
