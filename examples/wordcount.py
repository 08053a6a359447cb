"""Count the words of a text on Spark, exactly once, and ask for some of them.

    python examples/wordcount.py [FILE OR FOLDER] [--data FOLDER]

Without a text it counts the language reference that every CPython carries. The checkpoint and the
database are kept in the data folder, under a name made of the text's real path: another run goes
on where the last one ended and counts only the files that are new, whatever their date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import wordcount_screen as screen
from wordcount_text import Refused, Text, find_text, write_documentation

from trident import Count, MapGet, Split, Sum, TridentTopology
from trident.backends import sqlite
from trident.drpc.errors import DRPCExecutionError
from trident.errors import NoStateError, TridentError
from trident.spark import local_session
from trident.storm import TupleCollectionGet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def words(line: str) -> list[str]:
    """Return the words of a line, in lower case: runs of letters, of any language."""
    return re.findall(r"[^\W\d_]+", line.lower())


def word_count(spark: SparkSession, text: Text, database: Path) -> TridentTopology:
    """Describe the count; nothing runs yet."""
    lines = (
        spark.readStream.option("recursiveFileLookup", text.path.is_dir())
        .option("maxFilesPerTrigger", max(1, text.files // 8))  # a handful of batches
        .option("maxFileAge", "36500d")  # files much older than others would be left out
        .text(text.pattern)
    )
    topology = TridentTopology()
    counts = (
        topology.newStream("text", lines)
        .each("value", words, "word")
        .groupBy("word")
        .persistentAggregate(sqlite.opaque(database), Count(), "count")
    )
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .aggregate("count", Sum(), "sum")
    )
    return topology


def everything(database: Path) -> TridentTopology:
    """Describe a query of the counts that needs neither Spark nor a running count."""
    topology = TridentTopology()
    counts = topology.newStaticState(sqlite.opaque(database, "count"))
    (
        topology.newDRPCStream("everything")
        .stateQuery(counts, "args", TupleCollectionGet(), "word string, count long")
        .project("word, count")
    )
    return topology


def counts_in(database: Path) -> dict[str, int]:
    """Return every word and its count, as of the last batch that was committed."""
    if not database.exists():
        return {}
    with everything(database).start() as run:
        try:
            return dict(json.loads(run.drpc.execute("everything", "")))
        except DRPCExecutionError as error:
            if isinstance(error.__cause__, NoStateError):  # killed before the state was begun
                return {}
            raise


def count_words(text: Text, folder: Path) -> None:
    """Read what is new in the text, then show what is known of it."""
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "counts.db"
    known = sum(counts_in(database).values())
    screen.say_what_starts(text, known)
    spark = local_session()
    topology = word_count(spark, text, database)
    with topology.start(spark, folder / "checkpoint", trigger="available") as run:
        seconds = screen.follow(run)
        counts = counts_in(database)
        question = " ".join(screen.most_frequent(counts, 3))
        answer = run.drpc.execute("words", question)
    screen.show_top(counts)
    screen.show_answer(question, answer)
    new = sum(counts.values()) - known
    screen.summarise(topology, run.groups["text"].recentProgress, new, seconds, database)
    screen.say_how_to_go_on(text, folder)


def main() -> int:
    arguments = argparse.ArgumentParser(description="Count words on Spark, exactly once.")
    arguments.add_argument("text", nargs="?", type=Path, help="a file or a folder of text")
    arguments.add_argument(
        "--data", type=Path, default=Path("wordcount-data"), help="where counts are kept"
    )
    given = arguments.parse_args()
    data = given.data.absolute()
    try:
        text = find_text(given.text or write_documentation(data / "python-documentation"))
        text.refuse_to_hold(data)
        count_words(text, data / text.name)
    except OSError as error:
        return screen.refuse(f"{error.filename}: {error.strerror}. Name another folder: --data")
    except (Refused, TridentError) as error:
        return screen.refuse(str(error))
    except KeyboardInterrupt:
        return screen.refuse("Stopped. Run this again: it goes on after the last whole batch.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
