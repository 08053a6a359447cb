"""Storm's interface as a library for Thrift makes it of the published definition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TFramedTransportFactory

from tests.drpc.asking import PATIENCE

STORM: Any = thriftpy2.load(str(Path(__file__).with_name("storm.thrift")), "storm_thrift")


@contextmanager
def storm_client(service: Any, port: int | None) -> Iterator[Any]:
    """A client of one of Storm's services, as Storm's own: framed and binary."""
    client = make_client(
        service,
        "127.0.0.1",
        port,
        proto_factory=TBinaryProtocolFactory(),
        trans_factory=TFramedTransportFactory(),
        timeout=int(PATIENCE * 1000),
    )
    try:
        yield client
    finally:
        client.close()
