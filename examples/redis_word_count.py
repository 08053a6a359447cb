"""Count words on Spark with the counts in Redis, and ask for them from other processes meanwhile.

    python examples/redis_word_count.py                 counts until Ctrl-C; run again, it goes on
    python examples/redis_word_count.py query the dog   from another terminal, whenever you like

Both take --url redis://localhost:6379/0. What is counted is the language reference that every
CPython carries, over and over. The counts are under keys of this example's own; the folder
wordcount-data/redis remembers which batches are in them.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from trident import Count, FixedBatchSpout, Run, TridentTopology
from trident.backends import state_from_url
from trident.backends.state_url import StateURL
from trident.errors import NoStateError, TridentError
from trident.states import ReadOnlyMapState

URL = "redis://localhost:6379/0"
DATA = Path("wordcount-data", "redis").absolute()
WORDS = ("the", "of", "python")
TEXTS = list(pydoc_data.topics.topics.values())
TEXTS_A_BATCH = 4
SECONDS_A_BATCH = 0.5


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case: runs of letters, of any language."""
    return re.findall(r"[^\W\d_]+", text.lower())


def own(url: str) -> str:
    """Return the URL with a prefix for keys of our own, where it has none."""
    if "prefix=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}prefix=redis-word-count"


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


def ask(url: str, asked: Sequence[str]) -> str:
    """Return the counts of words as one committed batch left them, all of the same batch."""
    state = state_from_url(url).makeState()
    assert isinstance(state, ReadOnlyMapState)
    try:
        found = state.multiGet([word] for word in asked)
    except NoStateError:  # nobody has begun to count here
        found = [None] * len(asked)
    finally:
        state.close()
    return "  ".join(f"{word} {count or 0:,}" for word, count in zip(asked, found, strict=True))


def watch(url: str, asked: Sequence[str]) -> None:
    """Print the counts of words whenever they have changed, until the input is closed."""
    shown, over = "", False
    while not over:
        over = bool(select.select([sys.stdin], [], [], 0.1)[0])
        answer = ask(url, asked)
        if answer != shown:
            print(f"another process finds: {answer}", flush=True)
        shown = answer


@contextmanager
def watched(url: str, asked: Sequence[str]) -> Iterator[None]:
    """Have another process watch the counts, which knows nothing of this one but the URL."""
    command = [sys.executable, __file__, "watch", *asked, "--url", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE):  # at the end it is closed
        yield


def count_words(url: str, asked: Sequence[str], *, local: bool, until: int | None) -> None:
    """Count until batch `until` is done, or Ctrl-C."""
    print(f"The counts so far: {ask(url, asked)}", flush=True)  # is there a server?
    shown = str(StateURL.parse(url))  # without the password
    checkpoint = DATA / re.sub(r"\W+", "-", shown)
    named = [] if url == own(URL) else ["--url", shown]
    spark = None
    if not local:
        from trident.spark import local_session

        spark = local_session()
    with (
        watched(url, asked),
        word_count(url).start(spark, checkpoint, trigger=SECONDS_A_BATCH) as run,
        suppress(KeyboardInterrupt),
    ):
        print("Ctrl-C stops it. From another terminal, meanwhile or afterwards:")
        print("  " + shlex.join(["python", sys.argv[0], "query", *asked, *named]), flush=True)
        while not run.awaitTermination(0.1) and (until is None or batches(run) < until):
            pass
    print(f"\n{batches(run)} batches, each counted once: {ask(url, asked)}")
    print(f"Run it again: it goes on. To begin anew, remove the keys and {checkpoint}")


def batches(run: Run) -> int:
    return run.lastProgress.txid if run.lastProgress else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description="Count words on Spark, with counts in Redis.")
    arguments.add_argument("do", nargs="?", choices=("count", "query", "watch"), default="count")
    arguments.add_argument("words", nargs="*", help="whose counts are shown", default=WORDS)
    arguments.add_argument("--url", default=URL, help=f"where the counts are: {URL}")
    arguments.add_argument("--local", action="store_true", help="count without Spark and Java")
    arguments.add_argument("--until", type=int, help="stop when this batch is done")
    given = arguments.parse_args()
    url = own(given.url)
    try:
        if given.do == "query":
            print(ask(url, given.words))
        elif given.do == "watch":
            watch(url, given.words)
        else:
            count_words(url, given.words, local=given.local, until=given.until)
    except (TridentError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
