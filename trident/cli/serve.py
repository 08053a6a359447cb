"""``python -m trident serve``: answer a topology's queries until a signal comes."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

from trident.cli.named import named_topology
from trident.drpc.limits import DRPCLimits
from trident.drpc.server import HTTP_PORT, THRIFT_PORT, DRPCServer
from trident.states.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "topology",
        metavar="module:topology",
        help="a topology, or a function that returns one; its states are opened for reading, "
        "wherever it runs",
    )
    parser.add_argument(
        "--checkpoint", type=Path, help="run the topology too, with this checkpoint"
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: here only)")
    parser.add_argument("--port", type=int, default=HTTP_PORT, help=f"of HTTP ({HTTP_PORT})")
    parser.add_argument(
        "--thrift-port", type=int, default=THRIFT_PORT, help=f"of Thrift ({THRIFT_PORT})"
    )
    parser.add_argument(
        "--invocations-port", type=int, help="where others fetch requests (Storm's is 3773)"
    )
    parser.add_argument(
        "--access", type=Path, help='a JSON file of {"tokens": {user: token}, "allow": {…}}'
    )
    parser.add_argument("--certfile", type=Path, help="TLS with this certificate, as PEM")
    parser.add_argument("--keyfile", type=Path, help="the certificate's key, as PEM")
    parser.add_argument("--client-ca", type=Path, help="who signs clients' certificates, as PEM")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds that a call may take")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; calls that are here are answered before the end."""
    topology = named_topology(arguments.topology)
    with ExitStack() as stack:
        served: Any = topology
        if arguments.checkpoint is not None:
            served = stack.enter_context(topology.start(checkpoint=arguments.checkpoint))
        server = stack.enter_context(
            DRPCServer(
                served,
                arguments.host,
                arguments.port,
                thrift_port=arguments.thrift_port,
                invocations_port=arguments.invocations_port,
                certfile=arguments.certfile,
                keyfile=arguments.keyfile,
                client_ca=arguments.client_ca,
                limits=DRPCLimits(timeout=arguments.timeout),
                **_access(arguments.access),
            )
        )
        ended = Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: ended.set())
        functions = ", ".join(server.functions.names)
        print(f"{functions}: {server.url}/drpc/, Thrift on {server.thrift_port}", flush=True)
        while not ended.wait(1.0):
            if arguments.checkpoint is not None and (failure := served.exception()) is not None:
                raise failure
    return 0


def _access(path: Path | None) -> Mapping[str, Any]:
    """The tokens, and who may call what."""
    if path is None:
        return {}
    advice = 'Write {"tokens": {"ann": "…"}, "allow": {"words": ["ann"]}}.'
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--access can't be read ({error}):", str(path), advice=advice) from error
    if not isinstance(found, dict) or not found.keys() <= {"tokens", "allow"}:
        raise UsageError("--access holds something else:", str(path), advice=advice)
    return found
