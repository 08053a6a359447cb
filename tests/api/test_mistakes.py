"""Typical mistakes, as real programs: what they print is short, and ends with what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

pytestmark = pytest.mark.slow

MOST_LINES = 15
PRELUDE = """
import sys
from trident import *
from trident.backends import state_from_url
from trident.spouts.kafka import KafkaSpout

topology = TridentTopology()
spout = FixedBatchSpout("line string", 2, ["the cat"], ["a dog"])
stream = topology.newStream("lines", spout)


def count(state, checkpoint=None, spout=None):
    counting = TridentTopology()
    words = counting.newStream("lines", spout or FixedBatchSpout("line string", 1, ["cat"]))
    words.groupBy("line").persistentAggregate(state, Count(), "count")
    return counting


def play(topology, **options):
    with topology.start(**options) as run:
        run.processAllAvailable()


"""


@dataclass
class Mistake:
    """A program, and what its last lines have to say."""

    program: str
    says: str
    lines: int = 3
    environment: dict[str, str] = field(default_factory=dict)


def without(driver: str, url: str) -> str:
    return f"sys.modules[{driver!r}] = None\nplay(count({url!r}))"


MISTAKES = {
    "missing driver of Redis": Mistake(
        without("redis", "redis://127.0.0.9:1/0"), 'pip install "trident-spark[redis]"'
    ),
    "missing driver of PostgreSQL": Mistake(
        without("psycopg", "postgresql://127.0.0.9:1/shop"), 'pip install "trident-spark[postgres]"'
    ),
    "missing driver of HBase": Mistake(
        without("happybase", "hbase://127.0.0.9:1/t/f"), 'pip install "trident-spark[hbase]"'
    ),
    "missing driver of Kafka": Mistake(
        """
sys.modules["confluent_kafka"] = None
topology.newStream("words", KafkaSpout.opaque("127.0.0.9:1", "t", fields="value")).peek(print)
play(topology)
""",
        'pip install "trident-spark[kafka]"',
    ),
    "missing packages of rows": Mistake(
        """
sys.modules["sqlalchemy"] = None
stream.partitionPersist(Rows("sqlite:a.db", "lines"))
play(topology)
""",
        'pip install "trident-spark[rows]"',
    ),
    "wrong scheme": Mistake('count("redsi://localhost/0")', "Did you mean 'redis'?"),
    "wrong option of a URL": Mistake('count("redis://h/0?prefx=a")', "Did you mean 'prefix'?"),
    "wrong port of a URL": Mistake('count("redis://localhost:abc")', "Write the URL as in"),
    "wrong URL of a state that is read": Mistake('state_from_url("sqlte:a.db")', "'sqlite'?"),
    "folder that is not there": Mistake('play(count("sqlite:/no/such/a.db"))', "Make the folder"),
    "server away": Mistake('play(count("redis://127.0.0.9:1/0"))', "127.0.0.9:1"),
    "server of a state that is read away": Mistake(
        'state_from_url("redis://127.0.0.9:1/0?prefix=a").makeState().multiGet([("a",)])',
        "127.0.0.9:1",
    ),
    "state that nobody wrote": Mistake(
        'state_from_url("sqlite:a.db?prefix=a").makeState().multiGet([("a",)])', "a.db"
    ),
    "wrong field": Mistake('stream.each("lin", Split(), "word")', "Did you mean 'line'?"),
    "wrong number of arguments": Mistake("stream.map(lambda a, b: a)", "one argument for each"),
    "arguments in another order": Mistake('stream.each(Split(), "line", "w")', "come first"),
    "failing function": Mistake(
        'stream.each("line", lambda line: [1 / 0], "x")\nplay(topology)', "ZeroDivisionError", 6
    ),
    "failing function, waited for": Mistake(
        """
stream.each("line", lambda line: [1 / 0], "x")
with topology.start() as run:
    run.awaitTermination()
""",
        "ZeroDivisionError",
        6,
    ),
    "failing function, not waited for": Mistake(
        """
import threading
ended = threading.Event()
stream.each("line", lambda line: [1 / 0], "x")
with topology.start() as run:
    run.groups["lines"].when_ended(ended.set)
    ended.wait(60)
""",
        "ZeroDivisionError",
        6,
    ),
    "function that returns a plain value": Mistake(
        'stream.each("line", lambda line: len(line), "n")\nplay(topology)', "withColumn", 5
    ),
    "wrong type of a value": Mistake(
        'stream.each("line", lambda line: [line], "n long")\nplay(topology)', "declared long", 5
    ),
    "datetime without a zone": Mistake(
        """
from datetime import datetime
stream.withColumn("at timestamp", lambda line: datetime(2026, 1, 2))
play(topology)
""",
        "give it its time zone",
        5,
    ),
    "filter that returns no bool": Mistake(
        "stream.filter(len)\nplay(topology)", "a filter returns a bool", 5
    ),
    "function that gives up": Mistake(
        """
def give_up(line):
    raise FailedException("no luck")

stream.each("line", give_up, "x")
play(topology, retries=0)
""",
        "no luck",
        6,
    ),
    "failing spout": Mistake(
        """
class Broken(IBatchSpout):
    def emitBatch(self, batchId, collector):
        raise OSError("the device is gone")
    def getOutputFields(self):
        return Fields("line")

play(count("memory:", spout=Broken()))
""",
        "the device is gone",
    ),
    "failing updater": Mistake(
        """
class Broken(StateUpdater):
    def updateState(self, state, tuples, collector):
        raise KeyError("x")

stream.partitionPersist("memory:", "line", Broken())
play(topology)
""",
        "KeyError",
        6,
    ),
    "value that can't be stored": Mistake(
        """
class Seen(ReducerAggregator):
    def init(self):
        return set()
    def reduce(self, curr, tuple):
        return curr | {tuple[0]}

stream.groupBy("line").persistentAggregate("sqlite:a.db", "line", Seen(), "seen")
play(topology)
""",
        "can't be stored",
        5,
    ),
    "failing query": Mistake(
        """
class Broken(QueryFunction):
    def batchRetrieve(self, state, tuples):
        raise ValueError("boom")
    def execute(self, tuple, result, collector):
        pass

counts = stream.groupBy("line").persistentAggregate("memory:", Count(), "n")
topology.newDRPCStream("ask").stateQuery(counts, "args", Broken(), "n")
with topology.start() as run:
    run.drpc.execute("ask", "cat")
""",
        "ask('cat') failed: ValueError: boom",
    ),
    "mistyped query": Mistake(
        """
topology.newDRPCStream("words").project("args")
with topology.start() as run:
    run.drpc.execute("wrods", "cat")
""",
        "Did you mean 'words'?",
    ),
    "mistyped option": Mistake('topology.start(checkpoin="x")', "Did you mean 'checkpoint'?"),
    "tuple that is none": Mistake(
        'FeederBatchSpout("line string").feed(["the cat"])', "expected a list of 1 values"
    ),
    "checkpoint that is a file": Mistake(
        'open("taken", "w").close()\nplay(count("sqlite:a.db"), checkpoint="taken")', "taken"
    ),
    "checkpoint in use": Mistake(
        """
waiting = count("sqlite:a.db", spout=FeederBatchSpout("line string"))
with waiting.start(checkpoint="log"):
    count("sqlite:a.db", spout=FeederBatchSpout("line string")).start(checkpoint="log")
""",
        "log",
    ),
    "lost checkpoint": Mistake(
        """
import shutil
play(count("sqlite:a.db"), checkpoint="log")
shutil.rmtree("log")
play(count("sqlite:a.db"), checkpoint="log")
""",
        "checkpoint",
    ),
    "lost store": Mistake(
        """
import os
play(count("sqlite:a.db"), checkpoint="log")
os.remove("a.db")
play(count("sqlite:a.db"), checkpoint="log")
""",
        "accept_loss",
    ),
    "session that is none": Mistake('topology.start("local[2]")', "expected a SparkSession"),
    "name of Storm's": Mistake("from trident import BaseFunction", "Use trident.Function."),
    "port that is taken": Mistake(
        """
import socket
taken = socket.create_server(("127.0.0.1", 0))
topology.newDRPCStream("words").project("args")
with topology.start() as run:
    run.serve(port=taken.getsockname()[1])
""",
        "Give another port=",
    ),
    "spout of Kafka by its class": Mistake('KafkaSpout("one:9092", "lines")', "KafkaSpout.opaque("),
    "client with host and port": Mistake('DRPCClient("localhost", 3774)', "'localhost:3774'"),
    "Java is missing": Mistake(
        "from trident.spark import local_session\nlocal_session()",
        "Spark needs Java 17 or newer: install it, and set JAVA_HOME.",
        environment={"PATH": "/no/such/folder", "JAVA_HOME": ""},
    ),
    "PySpark is missing": Mistake(
        'sys.modules["pyspark"] = None\nfrom trident.spark import local_session',
        'pip install "trident-spark[spark]"',
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_few_lines_that_end_with_what_to_do(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    if "Spark" in name or "Java" in name:
        pytest.importorskip("pyspark")
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + mistake.program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **mistake.environment}
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    printed = done.stderr.splitlines()
    assert done.returncode == 1, done.stderr
    assert len(printed) <= MOST_LINES, done.stderr
    assert mistake.says in "\n".join(printed[-mistake.lines :]), done.stderr
