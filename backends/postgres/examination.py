"""Whether a PostgreSQL server is set so that what it acknowledges lasts."""

from __future__ import annotations

from collections.abc import Iterator

from trident.backends.postgres.connections import Database
from trident.states.finding import Finding

_OLDEST = 120000
_ASKED = """
    SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
        pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('fsync'),
        current_setting('full_page_writes'), current_setting('synchronous_commit'),
        current_setting('synchronous_standby_names'), current_user, current_schema(),
        has_schema_privilege(current_schema(), 'CREATE')"""


def examined(server: Database) -> Iterator[Finding]:
    """Yield what a server's settings mean for a state; asks for them in one statement."""
    with server.lend() as connection:
        row = connection.execute(_ASKED).fetchone()
    version, number, recovers, read_only, fsync, full_pages, commits, standbys = row[:8]
    user, schema, creates = row[8:]
    yield Finding("ok", f"{server} answers (version {version})")
    if number < _OLDEST:
        yield Finding("problem", f"{server} is older than 12", "Take 12 or newer.")
    if recovers or read_only == "on":
        advice = "Give the primary, or all hosts and target_session_attrs=read-write."
        yield Finding("problem", f"{server} takes no writes: it is a standby, or read-only", advice)
    if fsync == "off" or full_pages == "off":
        name = "fsync" if fsync == "off" else "full_page_writes"
        what = f"{server} has {name} off: a crash of its machine may damage all it holds"
        yield Finding("problem", what, f"Set {name} = on.")
    if commits == "off":
        what = f"{server} has synchronous_commit off: a crash loses what it has acknowledged last"
        yield Finding("warning", what, "Set synchronous_commit = on, at least for its user.")
    else:
        kept = f", and waits for {standbys}" if standbys else ""
        yield Finding("ok", f"{server} has synchronous_commit {commits}{kept}")
    if not creates:
        what = f"{server} lets {user} make no table in the schema {schema}"
        advice = f"GRANT CREATE ON SCHEMA {schema} TO {user}, or make the tables for it."
        yield Finding("warning", what, advice)
