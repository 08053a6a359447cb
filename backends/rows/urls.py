"""Makes the database of rows from its URL."""

from __future__ import annotations

from collections.abc import Mapping

from trident.backends.rows.database import RowsDatabase
from trident.backends.schemes import BuiltIn, Schemes
from trident.backends.state_url import StateURL
from trident.states.errors import StateURLError
from trident.states.tracebacks import Briefly

GROUP = "trident.rows"
"""The group of entry points under which other packages register databases."""

BUILT_IN: Mapping[str, BuiltIn] = {
    "postgresql": BuiltIn("trident.backends.rows.postgresql:from_url", "rows,postgres"),
    "sqlite": BuiltIn("trident.backends.rows.sqlite:from_url", "rows"),
    **dict.fromkeys(
        ("mysql", "mariadb"), BuiltIn("trident.backends.rows.mysql:from_url", "rows,mysql")
    ),
}
_SCHEMES = Schemes("database", GROUP, BUILT_IN)


def schemes() -> list[str]:
    """Return the schemes that the URL of a database may have, those of other packages too."""
    return _SCHEMES.names


def database_from_url(url: str) -> RowsDatabase:
    """The database at a URL, not connected to; StateURLError for what is malformed or unknown."""
    with Briefly():
        if url.startswith("jdbc:"):
            advice = "Leave out jdbc:, and write user:password@ before the host."
            raise StateURLError("a database's URL begins with jdbc:, as Java's do", "", (), advice)
        return _SCHEMES.make(StateURL.parse(url), RowsDatabase)  # type: ignore[type-abstract]
