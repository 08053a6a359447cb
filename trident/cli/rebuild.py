"""``python -m trident rebuild``: build states anew from history, then swap them in."""

from __future__ import annotations

import argparse
import time
import warnings

from trident.api.start import start
from trident.batch.start_options import StartOptions
from trident.cli.named import check_prefix, load_topology
from trident.cli.run import BatchPrinter, add_start_arguments, print_line, session, start_options
from trident.cli.serve import until_a_signal
from trident.errors import GuaranteeWarning
from trident.plan.substitution import plan_rebuild
from trident.states.errors import UsageError
from trident.states.maps.moving import check_places, swap_states

_CLOSE = 10.0
"""Seconds: a run through all that is there which takes no longer has left little behind."""
_LOOK_SECONDS = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_start_arguments(parser)
    parser.set_defaults(max_pending=4)  # history is there: the next batches need not wait
    parser.add_argument(
        "--state",
        action="append",
        required=True,
        metavar="name",
        help="a state of the topology; each of those that share batches, with its --to",
    )
    parser.add_argument(
        "--to",
        action="append",
        required=True,
        metavar="prefix",
        help="the new prefix of the state, in the same store",
    )
    parser.add_argument(
        "--from",
        dest="since",
        metavar="place",
        help="where Kafka's topics are read from: earliest, a time as 2026-01-31T12:00:00+00:00, "
        'or offsets as {"topic": {"0": 17}}; without it each source says that itself',
    )
    parser.add_argument(
        "--no-swap", action="store_true", help="only build them; state swap does the rest"
    )


def run(arguments: argparse.Namespace) -> int:
    """Build and swap; may be killed at any point, and run again."""
    if not arguments.checkpoint:
        advice = "A new one: its topology goes on from there after the swap."
        raise UsageError("rebuild without --checkpoint", "", (), advice)
    names, prefixes = arguments.state, arguments.to
    if not len(names) == len(prefixes) == len(set(names)) == len(set(prefixes)):
        what = "rebuild: each --state has one --to of its own, found"
        raise UsageError(what, ", ".join([*names, *prefixes]))
    for prefix in prefixes:
        check_prefix(prefix)
    topology = load_topology(arguments.topology)
    pairs = dict(zip(names, prefixes, strict=True))
    plan, swaps = plan_rebuild(topology.plan(), pairs, arguments.since)
    places = []
    if not arguments.no_swap:
        places = [check_places([factory for factory, _ in group]) for group in swaps]
    options = StartOptions(**start_options(arguments), trigger="available")
    spark = None if arguments.spark is None else session(arguments.spark)
    printer = BatchPrinter(as_json=False)
    with until_a_signal() as ended, warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # those of the topology's own start
        took = _CLOSE
        while took >= _CLOSE:
            began = time.monotonic()
            with start(plan, spark, options) as started:
                printer.begin(started)
                while not ended.wait(_LOOK_SECONDS) and not started.awaitTermination(0):
                    printer.print_new(started)
            printer.print_new(started, last=True)
            if ended.is_set():
                raise KeyboardInterrupt  # the same command goes on
            took = time.monotonic() - began
    if arguments.no_swap:
        print_line(f"built: {', '.join(prefixes)}; nobody reads them yet")
        return 0
    for group, found in zip(swaps, places, strict=True):
        swap_states(group, found)
    print_line(
        f"{', '.join(f'{prefix} is {name} now' for name, prefix in pairs.items())}. Start the "
        "topology with this checkpoint; one that runs with another ends with an error."
    )
    return 0
