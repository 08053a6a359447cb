"""``python -m trident chaos``: kill, compare, and report."""

from __future__ import annotations

import argparse
import random
import shlex
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

from trident.backends.state_url import StateURL
from trident.chaos.contender import Contender, TopologyFunction
from trident.chaos.rebuilding import RebuiltStore
from trident.chaos.report import Tally, Tested, append_row
from trident.chaos.rounds import Campaign, Episode
from trident.chaos.servers import checkpoints
from trident.chaos.store import MapStore, TestedStore, opened
from trident.chaos.tables import TableStore
from trident.chaos.truth import Truth
from trident.chaos.ways import Way
from trident.cli.named import load_name
from trident.states.errors import UsageError
from trident.states.printable import masked, one_line

_DEFAULT = "trident.chaos.word_count:topology"
_COMPARED_EPISODES = 30
_URLS = ("state", "rows", "checkpoint")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topology",
        nargs="?",
        default=_DEFAULT,
        metavar="module:topology",
        help="a function of a source (a stream of the field word) and a state's factory that "
        "returns a topology; by default a word count; with --rows there is none to choose",
    )
    written = parser.add_mutually_exclusive_group(required=True)
    written.add_argument(
        "--state",
        metavar="URL",
        help="the store, as in docs/states.md; without a host (redis:) a server is started, and "
        "hurt as well",
    )
    written.add_argument(
        "--rows",
        metavar="URL",
        help="the database, as in docs/rows.md, of tables that take changes; without a host "
        "(postgres:, mysql:) a server is started, and hurt as well",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="URL",
        help="where the logs are, each below it; s3: starts a SeaweedFS, which is hurt as well "
        "(default: in folders)",
    )
    parser.add_argument("--minutes", type=float, help="how long (default: 1, without --rounds)")
    parser.add_argument("--rounds", type=int, help="how many lives of drivers, at least")
    parser.add_argument("--seed", help="what happens follows from it (default: a new one)")
    parser.add_argument(
        "--source",
        help="opaque: batches come back with other tuples (default); transactional: with the same; "
        "kafka://host:port: a topic, kafka: of a broker that is started, and hurt as well; with "
        "--spark also frame (default there): a streaming DataFrame",
    )
    parser.add_argument(
        "--spark",
        nargs="?",
        const="classic",
        choices=["classic", "connect"],
        help="run all batches on Spark; connect: of a server of Spark Connect, which is started, "
        "and hurt as well",
    )
    parser.add_argument(
        "--case",
        help="what happens besides; rebuild: drivers build the states anew and swap them in, while "
        "an old run goes on; module:class: a case of your own, as a checkout has in its tests",
    )
    parser.add_argument(
        "--words", type=int, help="how long the record is (default: 1500, on Spark 300)"
    )
    parser.add_argument("--table", type=Path, help="a file to which a row in Markdown is appended")


def run(arguments: argparse.Namespace) -> int:
    """Run it; 1 where anything was lost, duplicated or torn, or where the test can't fail."""
    arguments.seed = arguments.seed or str(random.SystemRandom().randrange(10**6))
    make: TopologyFunction = load_name(arguments.topology)
    way = _way(arguments)
    seed, words = arguments.seed, arguments.words
    signal.signal(signal.SIGTERM, _interrupt)
    with (
        tempfile.TemporaryDirectory(prefix="trident-chaos-") as temporary,
        _opened(arguments, Path(temporary)) as store,
        way.served(Path(temporary)) as served,
        way.source(arguments.source, store.record(seed, words), Path(temporary)) as source,
        checkpoints(arguments.checkpoint, Path(temporary)) as logs,
    ):
        record = store.record(seed, words)
        troubles = [*store.troubles, *served, *source.troubles, *logs.troubles]
        campaign = Campaign(troubles, seed, Path(temporary), _say, logs.url)

        def tested(
            contender: Contender,
            truth: Truth,
            ends: Callable[[Tally], bool],
            episode: type[Episode] = way.episode,
        ) -> Tested:
            tally = campaign.run(contender, truth, ends, episode)
            found = Tested(contender, tally, record.length)
            for line in found.lines():
                _say(line)
            return found

        names = [arguments.topology] * store.takes_topology + [arguments.case or "rows"]
        name = ", ".join(names if arguments.case else names[:1])
        topology = store.contender(name, make, way, source)
        truth = store.truth(make, record)
        found = tested(topology, truth, _until(arguments), store.episode(way))
        compared: dict[Contender, Tested | None] = {}
        compared |= dict.fromkeys(store.compared(way, record, source))
        try:
            if not found.tally.errors:
                _say("for comparison, what can't be exact:")
                for contender in compared:
                    truth = store.truth_of_compared(record)
                    compared[contender] = tested(contender, truth, _seen_to_fail)
        finally:  # also when it is interrupted
            _end(arguments, found, compared)
    can_fail = all(each is None or each.tally.found.miscounted for each in compared.values())
    if not can_fail:
        _say("nothing wrong was found where something has to be: this run proves nothing")
    return int(found.wrong or not can_fail)


def _end(
    arguments: argparse.Namespace, found: Tested, compared: Mapping[Contender, Tested | None]
) -> None:
    """Say what is left to say of a run, and add it to the table."""
    for contender, each in compared.items():
        if each is None:
            _say(f"{contender.name}: not yet compared")
    if arguments.table:
        state, source = _shown("state", arguments.state or arguments.rows), masked(arguments.source)
        if arguments.rows:
            state = f"--rows {state}"
        if arguments.case:
            state += f"`, `--case {arguments.case}"
        if arguments.checkpoint:
            state += f"`, `--checkpoint {_shown('checkpoint', arguments.checkpoint)}"
        append_row(arguments.table, state, source, arguments.seed, found, compared)
    _say(f"seed {arguments.seed}; again: {_command(arguments)}")


def _opened(arguments: argparse.Namespace, folder: Path) -> AbstractContextManager[TestedStore]:
    case = arguments.case
    made: type[TestedStore] = MapStore if not case else RebuiltStore
    if arguments.rows:
        made = TableStore
    elif case not in (None, "rebuild"):
        made = load_name(case)
    if not made.takes_topology and arguments.topology != _DEFAULT:
        own = "--rows" if arguments.rows else f"--case {case}"
        raise UsageError(f"{own} has a topology of its own; --state takes", arguments.topology)
    return opened(made, arguments.state or arguments.rows, folder)


def _shown(name: str, value: object) -> str:
    """Return what an option says, without secrets."""
    return str(StateURL.parse(str(value)) if name in _URLS else masked(str(value)))


def _interrupt(*_: object) -> NoReturn:
    """Let servers and folders be cleared away."""
    raise KeyboardInterrupt


def _way(arguments: argparse.Namespace) -> Way:
    """Return how drivers run, and fill in what is left out."""
    way = Way()
    if arguments.case and arguments.rows:
        raise UsageError("--case is for maps", "", (), "Leave --rows out.")
    if arguments.spark:
        from trident.chaos.on_spark import SparkClients, SparkPrograms
        from trident.spark.java import require_java

        require_java()
        way = SparkClients() if arguments.spark == "connect" else SparkPrograms()
    arguments.source = arguments.source or way.source_name
    arguments.words = arguments.words or way.words
    return way


def _until(arguments: argparse.Namespace) -> Callable[[Tally], bool]:
    minutes = 1.0 if arguments.minutes is None and arguments.rounds is None else arguments.minutes
    end = None if minutes is None else time.monotonic() + 60 * minutes

    def ends(tally: Tally) -> bool:
        enough = arguments.rounds is not None and tally.rounds >= arguments.rounds
        return enough or (end is not None and time.monotonic() >= end)

    return ends


def _seen_to_fail(tally: Tally) -> bool:
    return tally.found.miscounted or bool(tally.errors) or tally.episodes >= _COMPARED_EPISODES


def _command(arguments: argparse.Namespace) -> str:
    words = ["python -m trident chaos"]
    if arguments.topology != _DEFAULT:
        words.append(arguments.topology)
    for name in (*_URLS, "case", "minutes", "rounds", "seed", "source", "words", "spark"):
        value = getattr(arguments, name)
        if value is not None:
            words.append(f"--{name} {shlex.quote(_shown(name, value))}")
    return " ".join(words)


def _say(line: str) -> None:
    print(one_line(line), flush=True)
