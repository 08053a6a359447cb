"""``python -m trident serve``: answer a topology's queries until a signal comes."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from trident.cli.named import load_topology
from trident.server.limits import DRPCLimits
from trident.server.server import HTTP_PORT, THRIFT_PORT, DRPCServer
from trident.states.errors import UsageError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    topology = load_topology(arguments.topology)
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


def add_server_arguments(parser: argparse.ArgumentParser, http_port: int | None) -> None:
    """Declare the options of a server; `http_port` is the default of ``--port``.

    Where that is None there is no server without it.
    """
    serves = http_port is not None
    port = f"of HTTP ({HTTP_PORT})" if serves else f"answer queries too, by HTTP ({HTTP_PORT})"
    thrift = f"of Thrift ({THRIFT_PORT})" if serves else f"and by Thrift ({THRIFT_PORT})"
    group = parser.add_argument_group("the server")
    group.add_argument("--host", default="127.0.0.1", help="where to listen (default: here only)")
    group.add_argument("--port", type=int, default=http_port, help=port)
    group.add_argument(
        "--thrift-port", type=int, default=THRIFT_PORT if serves else None, help=thrift
    )
    group.add_argument(
        "--invocations-port", type=int, help="where others fetch requests (Storm's is 3773)"
    )
    group.add_argument(
        "--access", type=Path, help='a JSON file of {"tokens": {user: token}, "allow": {…}}'
    )
    group.add_argument(
        "--name", action="append", default=[], help="a host name by which HTTP may be asked"
    )
    group.add_argument("--certfile", type=Path, help="TLS with this certificate, as PEM")
    group.add_argument("--keyfile", type=Path, help="the certificate's key, as PEM")
    group.add_argument("--client-ca", type=Path, help="who signs clients' certificates, as PEM")
    seconds = DRPCLimits().timeout
    group.add_argument(
        "--timeout", type=float, default=seconds, help=f"seconds that a call may take ({seconds:g})"
    )


def server_options(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """What `DRPCServer` takes, of these options."""
    return {
        "host": arguments.host,
        "port": arguments.port,
        "thrift_port": arguments.thrift_port,
        "invocations_port": arguments.invocations_port,
        "names": arguments.name,
        "certfile": arguments.certfile,
        "keyfile": arguments.keyfile,
        "client_ca": arguments.client_ca,
        "limits": DRPCLimits(timeout=arguments.timeout),
        **_access(arguments.access),
    }


def listening(server: DRPCServer) -> str:
    """What a server answers, and where, in one line."""
    served = ", ".join(server.functions.names) or "states"
    places = [] if server.port is None else [f"{server.url}/"]
    if server.thrift_port is not None:
        places.append(f"Thrift on {server.thrift_port}")
    return f"serving {served}: {', '.join(places)}"


@contextmanager
def until_a_signal() -> Iterator[Event]:
    """Give an event that SIGINT or SIGTERM sets; the second of them does what it does otherwise."""
    ended = Event()
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def end(*_: object) -> None:
        ended.set()
        _restore(before)

    for each in SIGNALS:
        signal.signal(each, end)
    try:
        yield ended
    finally:
        _restore(before)


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    for each, handler in handlers.items():
        signal.signal(each, handler)


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
