"""Count words, with counts in PostgreSQL, which a plain SQL client joins with a table of its own.

    python examples/postgres_dashboard.py               counts until Ctrl-C; run again, it goes on
    python examples/postgres_dashboard.py show          the client alone, from another terminal

Both take --url postgresql://user@localhost:5432/postgres. What is counted is the language reference
that every CPython carries, over and over. The client knows nothing of topologies: its own table
says of what kind some words are, and it asks how often words of each kind occurred. What it finds
is what some batch has left, whole, at any moment. The folder wordcount-data/postgres remembers
which batches are in the counts.
"""

from __future__ import annotations

import argparse
import keyword
import pydoc_data.topics
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from trident import Count, FixedBatchSpout, Run, TridentTopology
from trident.backends.state_url import StateURL
from trident.errors import TridentError

URL = "postgresql://localhost:5432/postgres"
DATA = Path("wordcount-data", "postgres").absolute()
TEXTS = list(pydoc_data.topics.topics.values())
TEXTS_A_BATCH = 4
SECONDS_A_BATCH = 0.5
KINDS = {
    **{word.lower(): "keyword" for word in keyword.kwlist},
    **dict.fromkeys(("int", "float", "str", "list", "tuple", "dict", "set", "bytes"), "type"),
}


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case: runs of letters, of any language."""
    return re.findall(r"[^\W\d_]+", text.lower())


def own(url: str) -> str:
    """Return the URL with what this example needs: numbers, and names for the view's columns."""
    prefix = "" if "prefix=" in url else "&prefix=dashboard"
    return f"{url}{'&' if '?' in url else '?'}values=bigint&columns=word,count{prefix}"


def word_count(url: str) -> TridentTopology:
    """Describe the count; nothing runs yet."""
    texts = FixedBatchSpout("text string", TEXTS_A_BATCH, *([text] for text in TEXTS), cycle=True)
    topology = TridentTopology()
    (
        topology.newStream("texts", texts)
        .each("text", words, "word")
        .groupBy("word")
        .persistentAggregate(url, Count(), "count")
    )
    return topology


class Dashboard:
    """A client of SQL, with a table of its own."""

    def __init__(self, url: str) -> None:
        import psycopg
        from psycopg import sql

        prefix: Any = StateURL.parse(url).options["prefix"]
        try:
            self._connection = psycopg.connect(url.partition("?")[0], autocommit=True)
        except psycopg.OperationalError as error:
            sys.exit(str(error))
        kinds = sql.Identifier(f"{prefix}_kinds")
        columns = sql.SQL("(word text PRIMARY KEY, kind text)")
        self._connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} {}").format(kinds, columns))
        self._connection.cursor().executemany(
            sql.SQL("INSERT INTO {} VALUES (%s, %s) ON CONFLICT DO NOTHING").format(kinds),
            KINDS.items(),
        )
        self._question = sql.SQL(
            "SELECT kind, sum(count) FROM {} JOIN {} USING (word) GROUP BY kind ORDER BY kind"
        ).format(sql.Identifier(f"{prefix}_committed"), kinds)
        # Whoever begins or commits a batch notifies; nobody has to.
        self._connection.execute("LISTEN trident_states")

    def ask(self) -> str:
        """Return how often words of each kind occurred, as one committed batch left it."""
        import psycopg

        try:
            found = self._connection.execute(self._question).fetchall()
        except psycopg.errors.UndefinedTable:  # nobody has begun to count here
            found = []
        return "  ".join(f"{kind} {count:,}" for kind, count in found) or "nothing yet"

    def watch(self) -> None:
        """Print what is found whenever it has changed, until the input is closed."""
        shown, over = "", False
        while not over:
            over = bool(select.select([sys.stdin], [], [], 0)[0])
            answer = self.ask()
            if answer != shown:
                print(f"an SQL client finds: {answer}", flush=True)
            shown = answer
            for _ in self._connection.notifies(timeout=0.2, stop_after=1):
                pass

    def close(self) -> None:
        self._connection.close()


@contextmanager
def watched(url: str) -> Iterator[None]:
    """Have another process ask, which knows nothing of this one but the URL."""
    command = [sys.executable, __file__, "watch", "--url", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE):  # at the end it is closed
        yield


def count_words(url: str, *, local: bool, until: int | None) -> None:
    """Count until batch `until` is done, or Ctrl-C."""
    place = StateURL.parse(own(url))
    checkpoint = DATA / re.sub(r"\W+", "-", str(place))  # without the password
    prefix = place.options["prefix"]
    spark = None
    if not local:
        from trident.spark import local_session

        spark = local_session()
    with (
        word_count(own(url)).start(spark, checkpoint, trigger=SECONDS_A_BATCH) as run,
        watched(url),
        suppress(KeyboardInterrupt),
    ):
        print("Ctrl-C stops it. From another terminal, meanwhile or afterwards, with psql:")
        print(f"  SELECT word, count FROM {prefix}_committed ORDER BY count DESC", flush=True)
        while not run.awaitTermination(0.1) and (until is None or batches(run) < until):
            pass
    print(f"\n{batches(run)} batches, each counted once: {asked(url)}")
    print(f"Run it again: it goes on. To begin anew, drop the tables and remove {checkpoint}")


def asked(url: str) -> str:
    """Ask once."""
    with closing(Dashboard(own(url))) as dashboard:
        return dashboard.ask()


def batches(run: Run) -> int:
    return run.lastProgress.txid if run.lastProgress else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description="Count words, with the counts in PostgreSQL.")
    arguments.add_argument("do", nargs="?", choices=("count", "show", "watch"), default="count")
    arguments.add_argument("--url", default=URL, help=f"where the counts are: {URL}")
    arguments.add_argument("--local", action="store_true", help="count without Spark and Java")
    arguments.add_argument("--until", type=int, help="stop when this batch is done")
    given = arguments.parse_args()
    try:
        if given.do == "show":
            print(asked(given.url))
        elif given.do == "watch":
            with closing(Dashboard(own(given.url))) as dashboard:
                dashboard.watch()
        else:
            count_words(given.url, local=given.local, until=given.until)
    except (TridentError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
