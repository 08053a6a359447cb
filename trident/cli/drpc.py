"""``python -m trident drpc``: call a function, and print its answer."""

from __future__ import annotations

import argparse
import os
import sys

from trident.client.drpc_client import DRPCClient
from trident.states.printable import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "servers",
        metavar="host:port",
        help="the server, or several with commas between them; thrift://host:port for Thrift. A "
        "token is taken from the environment's TRIDENT_TOKEN",
    )
    parser.add_argument("function", help="the function")
    parser.add_argument("args", nargs="?", default="", help="its arguments; - reads them")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds (default: 5)")
    parser.add_argument("--ca", help="who signs the server's certificate, as PEM")


def run(arguments: argparse.Namespace) -> int:
    args = sys.stdin.read() if arguments.args == "-" else arguments.args
    token = os.environ.get("TRIDENT_TOKEN")
    servers = arguments.servers.split(",")
    with DRPCClient(*servers, timeout=arguments.timeout, token=token, ca=arguments.ca) as client:
        answer = client.execute(arguments.function, args)
    # Another program is given the answer as it came.
    print(printable(answer) if sys.stdout.isatty() else answer)
    return 0
