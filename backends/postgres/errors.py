"""What PostgreSQL and its driver say, as errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trident.states.errors import CorruptStateError, StateError, StateUnavailableError

_START = (
    "Start PostgreSQL there (apt-get install postgresql; for a trial: docker run -d -p 5432:5432 "
    "-e POSTGRES_PASSWORD=... postgres), or check host, port and firewall."
)
_SILENT = (
    "It may be paused or overloaded, or another session may hold locks on the state's tables (look "
    "at pg_stat_activity); give a longer timeout= or a smaller max_put= if it is only slow."
)
_CUT = "The batch is retried. See the server's log: did it restart, or drop this client?"
_MANY = "Raise its max_connections, or put PgBouncer in front: each task connects by itself."
_REFUSED = (  # connections, whose errors have no code; servers may translate these texts
    ("too many", _MANY),
    ("slots are reserved", _MANY),
    ("the database system is", "It is starting, stopping or recovering; see its log."),
    ("password", "Give the user and the password of the URL, or PGPASSWORD, or a passfile."),
    ("SSL", "Check sslmode= and the certificates."),
    ("does not exist", "Create it, or give another one."),
    ("resolve host", "Check the host's name, and that this machine can look it up."),
)
_ADVICE = {
    "53300": _MANY,
    "53100": "Make room on its disk.",
    "53": "The server is short of resources; see its log.",
    "25P03": "The client stood still in a transaction, so that was ended. The batch is retried.",
    "25006": "It is a standby. Give the primary, or all hosts and target_session_attrs=read-write.",
    "40": "Another session wrote the same rows. The batch is retried.",
    "55P03": "Another session holds a lock on the state's tables; look at pg_stat_activity.",
    "57014": "The server's statement_timeout, or a person, has ended it. The batch is retried.",
    "57P": _CUT,
    "58": "The server can't use its disk; see its log.",
    "42501": "Grant this user what it needs: CREATE on the schema, until the state has begun, then "
    "SELECT, INSERT, UPDATE and DELETE on its table and on trident_states.",
}
"""The next step, by the code's first characters."""
_CORRUPT = (
    "Open it as the state that wrote it (kind=, values=, table=), or restore it from a backup: "
    "something else has that name, or has changed its columns."
)


@contextmanager
def explained(place: object) -> Iterator[None]:
    """Turn what the driver raises into errors with advice: corrupt if the tables are others."""
    try:
        yield
    except Exception as error:
        explanation = explain(str(place), error)
        if explanation is error:
            raise
        raise explanation from None


def explain(place: str, error: Exception) -> Exception:
    """Return the error to raise for one of the driver's; itself if it is the caller's mistake."""
    if isinstance(error, TimeoutError):
        return StateUnavailableError(place, str(error), _SILENT)
    if not type(error).__module__.startswith("psycopg"):
        return error
    code = getattr(error, "sqlstate", None)
    said = (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")
    if code is None:
        if type(error).__name__ not in ("OperationalError", "ConnectionTimeout", "InterfaceError"):
            return error  # the caller's mistake
        if not any(part in said for part in ("connection failed", "timeout", "resolve host")):
            return StateUnavailableError(place, f"the connection was cut ({said})", _CUT)
        advice = next((advice for part, advice in _REFUSED if part in said), _START)
        return StateUnavailableError(place, said, advice)
    for length in (5, 3, 2):
        if code[:length] in _ADVICE:
            return StateUnavailableError(place, said, _ADVICE[code[:length]])
    if code[:2] in ("08", "28", "3D"):
        advice = next((advice for part, advice in _REFUSED if part in said), _CUT)
        return StateUnavailableError(place, said, advice)
    if code == "2BP01":
        detail = str(error.diag.message_detail).replace("\n", ", ")  # type: ignore[attr-defined]
        advice = "Drop what depends on it, and make it again afterwards"
        return StateError(f"{place}: {said}: {detail}. {advice}.")
    if code[:2] == "42":
        return CorruptStateError(place, said, _CORRUPT)
    return error
