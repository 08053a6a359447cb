"""``python -m trident run``: run a topology until it ends, or until a signal comes."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, get_args

from trident.api.run import Run
from trident.batch.adopt import Adopt
from trident.batch.events import Event, GroupStarted
from trident.batch.progress import BatchProgress
from trident.batch.start_options import EngineChoice, OnFailure
from trident.cli.named import load_topology
from trident.cli.serve import add_server_arguments, listening, server_options, until_a_signal
from trident.plan.nodes import OnError
from trident.states.errors import UsageError
from trident.states.printable import one_line

_LOOK_SECONDS = 0.05
_LINE_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_start_arguments(parser)
    parser.add_argument(
        "--trigger", metavar="seconds", help="between the starts of batches; or: available"
    )
    adopted = parser.add_mutually_exclusive_group()
    adopted.add_argument(
        "--adopt-checkpoint",
        metavar="checkpoint",
        help="the older checkpoint that a new one goes on from, a folder or a URL",
    )
    adopted.add_argument(
        "--adopt-states",
        metavar="log-id=committed",
        help="go on with states whose checkpoint is lost; =burn undoes what was in flight",
    )
    adopted.add_argument(
        "--adopt-storm", metavar="txid", type=int, help="go on behind the last batch of Storm"
    )
    parser.add_argument(
        "--adopt-spark-checkpoint", metavar="folder or URL", help="beside --adopt-checkpoint by URL"
    )
    parser.add_argument(
        "--accept-loss",
        action="append",
        default=[],
        metavar="state=txid",
        help="go on without what a store has lost, as the error says it",
    )
    parser.add_argument(
        "--accept-change",
        action="append",
        default=[],
        metavar="name=what it is now",
        help="go on with a state or stream that was something else, as the error says it",
    )
    parser.add_argument(
        "--json", action="store_true", help="print each batch as a line of JSON, and nothing else"
    )
    parser.add_argument(
        "--restarts",
        type=int,
        default=0,
        metavar="N",
        help="start it again where it was killed, or a store or Spark was away (0)",
    )
    parser.add_argument(
        "--within", type=float, metavar="S", help="at most N restarts in S seconds (600)"
    )
    add_server_arguments(parser, None)


def add_start_arguments(parser: argparse.ArgumentParser) -> None:
    """Add those of all commands that start a topology."""
    parser.add_argument(
        "topology",
        metavar="module:topology",
        help="a topology, or a function that returns one; looked for from the current folder",
    )
    parser.add_argument(
        "--checkpoint",
        help="the folder of the log, or a URL of Redis, ZooKeeper or an object store; without it "
        "no later start can continue",
    )
    parser.add_argument(
        "--spark",
        nargs="?",
        const="",
        metavar="master",
        help="run on Spark: local[*] where neither a master, nor sc://host of Spark Connect, is "
        "given; under spark-submit where that says",
    )
    parser.add_argument(
        "--engine", choices=get_args(EngineChoice), default="auto", help="see start (auto)"
    )
    parser.add_argument("--retries", type=int, default=3, help="of a batch that fails (3)")
    parser.add_argument(
        "--on-failure", choices=get_args(OnFailure), default="stop", help="what follows then (stop)"
    )
    parser.add_argument(
        "--on-error", choices=get_args(OnError), default="fail", help="of one bad tuple (fail)"
    )
    parser.add_argument("--max-errors", type=float, metavar="share", help="of bad tuples, from 0")
    parser.add_argument("--dead-letters", metavar="URL", help="of what keeps them")
    parser.add_argument(
        "--patience", type=float, default=600.0, help="seconds with a store that is away (600)"
    )
    parser.add_argument("--max-pending", type=int, default=1, help="batches not committed (1)")
    beside = "beside a checkpoint by URL"
    parser.add_argument("--spark-checkpoint", metavar="folder or URL", help=beside)
    parser.add_argument("--hosted", choices=["driver"], help="which process updates all states")


def run(arguments: argparse.Namespace) -> int:
    """Run it; the batch under way is finished after a first signal, not after a second."""
    if arguments.restarts:
        if (status := _supervised(arguments)) is not None:
            return status
    elif arguments.within is not None:
        raise UsageError("--within without --restarts: nothing is started again")
    topology = load_topology(arguments.topology)
    options = _options(arguments)
    say = _nothing if arguments.json else print_line
    with ExitStack() as stack:
        spark = None if arguments.spark is None else session(arguments.spark)
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            started = stack.enter_context(topology.start(spark, **options))
        for doubt in doubts:
            print(one_line(f"warning: {doubt.message}"), file=sys.stderr)
        serves = arguments.port is not None or arguments.thrift_port is not None
        if serves:
            server = started.serve(**server_options(arguments))
            say(listening(server))
        printer = BatchPrinter(arguments.json)
        with until_a_signal() as ended:
            say(f"running {', '.join(started.groups) or 'queries only'}; Ctrl-C stops")
            printer.begin(started)
            only_queries = serves and not started.groups
            while not ended.wait(_LOOK_SECONDS):
                printer.print_new(started)
                if started.awaitTermination(0) and not only_queries:
                    break
            if ended.is_set():
                say("stopping after the batch under way")
            started.stop()
        printer.print_new(started, last=True)
    return 0


def _supervised(arguments: argparse.Namespace) -> int | None:
    """Return None in a process that is to do the work; see `supervise`."""
    if arguments.checkpoint is None:
        raise UsageError("--restarts without --checkpoint: a restart could not continue")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        what = "--restarts under spark-submit, which can't start its JVM again"
        raise UsageError(what, advice="Let who calls it do that: status 75 says where it helps.")
    from trident.cli.restarts import supervise

    within = 600.0 if arguments.within is None else arguments.within
    if arguments.restarts < 0 or within <= 0:
        raise UsageError("--restarts and --within are numbers above 0")
    return supervise(arguments.restarts, within)


def start_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `start` takes, of the options of all commands that start a topology."""
    given = vars(arguments)
    names = "checkpoint spark_checkpoint engine retries on_failure patience max_pending hosted"
    return {name: given[name] for name in f"{names} on_error max_errors dead_letters".split()}


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `start` takes, of these options."""
    return {
        **start_options(arguments),
        "trigger": _trigger(arguments.trigger),
        "adopt": _adopt(arguments),
        "accept_loss": dict(map(_loss, arguments.accept_loss)),
        "accept_change": dict(map(_change, arguments.accept_change)),
    }


def _trigger(word: str | None) -> float | str | None:
    """Return a number of seconds, or the word, which `start` checks."""
    try:
        return None if word is None else float(word)
    except ValueError:
        return word


def _adopt(arguments: argparse.Namespace) -> Adopt | None:
    if arguments.adopt_spark_checkpoint is not None and arguments.adopt_checkpoint is None:
        advice = "Give both, those of the run that is to be continued."
        raise UsageError("--adopt-spark-checkpoint without --adopt-checkpoint", "", (), advice)
    if arguments.adopt_checkpoint is not None:
        return Adopt.from_checkpoint(arguments.adopt_checkpoint, arguments.adopt_spark_checkpoint)
    if arguments.adopt_states is not None:
        log_id, _, in_flight = arguments.adopt_states.rpartition("=")
        if not log_id:
            what = "--adopt-states is not log-id=committed or log-id=burn:"
            raise UsageError(what, arguments.adopt_states)
        return Adopt.from_states(log_id, in_flight=in_flight)
    if arguments.adopt_storm is not None:
        return Adopt.from_storm(arguments.adopt_storm)
    return None


def _loss(word: str) -> tuple[str, int]:
    name, _, txid = word.rpartition("=")
    if not (name and txid.isascii() and txid.isdigit()):
        advice = "As in --accept-loss count=5: the state, and the batch that the error names."
        raise UsageError("--accept-loss is not state=txid:", word, (), advice)
    return name, int(txid)


def _change(word: str) -> tuple[str, str]:
    name, _, found = word.partition("=")
    if not (name and found):
        advice = "As in --accept-change 'count=Count by word string as long', as the error says."
        raise UsageError("--accept-change is not name=what it is now:", word, (), advice)
    return name, found


def session(master: str) -> Any:
    try:
        from trident.spark.session import session_at
    except ImportError as error:
        raise ImportError('Spark is missing: pip install "trident-spark[spark]"') from error
    return session_at(master)


class BatchPrinter:
    """Prints the batches of a run: each as JSON, or about one a second for a person."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._last: dict[str, BatchProgress] = {}
        self._lines: dict[str, float] = {}

    def begin(self, run: Run) -> None:
        """Print the batch after which each group goes on, and what it has found."""
        if not self._json:
            run.listen(_say_recovery).stop()

    def print_new(self, run: Run, *, last: bool = False) -> None:
        """Print what is new; with `last` also how it ended."""
        for name, group in run.groups.items():
            for progress in self._new(name, group.recentProgress):
                if self._json:
                    print(progress.json)
                elif self._is_due(progress):
                    print_line(_line(progress))
            if last and not self._json:
                found = self._last.get(name)
                after = f" after batch {found.txid}" if found else ""
                print_line(f"{name}: {group.status}{after}")
        sys.stdout.flush()

    def _new(self, name: str, recent: list[BatchProgress]) -> Iterator[BatchProgress]:
        known = self._last.get(name)
        if known is not None and recent and known.txid < recent[0].txid - 1 and self._json:
            # So many were done since the last look that the run remembers not all of them.
            print(json.dumps({"group": name, "left_out": recent[0].txid - known.txid - 1}))
        for progress in recent:
            if known is None or known.txid < progress.txid:
                self._last[name] = progress
                yield progress

    def _is_due(self, progress: BatchProgress) -> bool:
        now = time.monotonic()
        notable = progress.attempts > 1 or progress.dead_letter is not None
        if not notable and now - self._lines.get(progress.group, 0.0) < _LINE_SECONDS:
            return False
        self._lines[progress.group] = now
        return True


def _say_recovery(event: Event) -> None:
    if isinstance(event, GroupStarted) and event.recovered:
        print_line(event.text)


def _line(progress: BatchProgress) -> str:
    text = f"{progress.group}: batch {progress.txid}, {progress.tuples:,} tuples"
    text += f", {sum(progress.seconds.values()):.2f} s"
    if progress.attempts > 1:
        text += f", {progress.attempts} attempts"
    if progress.bad_tuples:
        text += f", {sum(progress.bad_tuples.values()):,} bad"
    if progress.dead_letter is not None:
        text += f", given up: {progress.dead_letter}"
    return text


def print_line(line: str) -> None:
    print(one_line(line), flush=True)


def _nothing(_: str) -> None:
    """Keep to the JSON."""
