"""``python -m trident serve``: answer a topology's queries until a signal comes."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from trident.cli.named import named_topology
from trident.cli.serving import add_server_arguments, listening, server_options, until_a_signal
from trident.server.server import HTTP_PORT, DRPCServer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "topology",
        metavar="module:topology",
        help="a topology, or a function that returns one; its states are opened for reading, "
        "wherever it runs",
    )
    parser.add_argument(
        "--checkpoint", help="run the topology too, with this checkpoint, a folder or a URL"
    )
    add_server_arguments(parser, HTTP_PORT)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; calls that are here are answered before the end."""
    topology = named_topology(arguments.topology)
    with ExitStack() as stack:
        served: Any = topology
        if arguments.checkpoint is not None:
            served = stack.enter_context(topology.start(checkpoint=arguments.checkpoint))
        server = stack.enter_context(DRPCServer(served, **server_options(arguments)))
        ended = stack.enter_context(until_a_signal())
        print(f"{listening(server)}; Ctrl-C stops", flush=True)
        while not ended.wait(1.0):
            if arguments.checkpoint is not None and (failure := served.exception()) is not None:
                raise failure
    return 0
