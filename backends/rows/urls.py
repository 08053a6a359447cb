"""Makes the database of rows from its URL."""

from __future__ import annotations

from trident.backends.rows.database import RowsDatabase
from trident.backends.schemes import BuiltIn, Schemes
from trident.backends.state_url import StateURL
from trident.states.errors import StateURLError
from trident.states.tracebacks import Briefly

DATABASES = Schemes(
    "database",
    "trident.rows",
    {
        "postgresql": BuiltIn("trident.backends.rows.postgresql:from_url", "rows,postgres"),
        "sqlite": BuiltIn("trident.backends.rows.sqlite:from_url", "rows"),
        **dict.fromkeys(
            ("mysql", "mariadb"), BuiltIn("trident.backends.rows.mysql:from_url", "rows,mysql")
        ),
    },
)
"""The schemes that the URL of a database may have."""


def database_from_url(url: str) -> RowsDatabase:
    """The database at a URL, not connected to; StateURLError for what is malformed or unknown."""
    with Briefly():
        if url.startswith("jdbc:"):
            advice = "Leave out jdbc:, and write user:password@ before the host."
            raise StateURLError("a database's URL begins with jdbc:, as Java's do", "", (), advice)
        return DATABASES.make(StateURL.parse(url), RowsDatabase)  # type: ignore[type-abstract]
