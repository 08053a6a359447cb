"""Whether a test has its server: promised by address, started here, or missing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import NoReturn, Protocol

import pytest

from trident.testing.servers.ports import accepts
from trident.testing.servers.process import MissingServer, skip_where_quick


class Served(Protocol):
    """What tests are given: where the server is."""

    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class PromisedServer:
    """A server that someone else runs."""

    url: str


@contextmanager
def served(name: str, made: Callable[[], AbstractContextManager[Served]]) -> Iterator[Served]:
    """Give the server of TRIDENT_TEST_<name>_URL, else what `made` makes and starts.

    One that is promised and not there fails the test. One that can't be had here skips it, and
    fails it where CI is true: there everything has to have run.
    """
    skip_where_quick()
    promised = os.environ.get(f"TRIDENT_TEST_{name}_URL")
    with ExitStack() as running:
        server: Served
        if promised:
            _must_be_there(name, promised)
            server = PromisedServer(promised)
        else:
            try:
                server = running.enter_context(made())
            except MissingServer as missing:
                do_without(str(missing))
        yield server


def _must_be_there(name: str, url: str) -> None:
    for host, port in re.findall(r"([^/@,]+):(\d+)(?=[,/?]|$)", url.partition("://")[2]):
        if not accepts(host, int(port)):
            pytest.fail(
                f"TRIDENT_TEST_{name}_URL promises a server, but none is at {host}:{port}; "
                "start it, or unset the variable",
                pytrace=False,
            )


def do_without(reason: str) -> NoReturn:
    """Skip the test that asks for what is missing; fail it where CI is true."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI is true, so nothing may be skipped: {reason}", pytrace=False)
    pytest.skip(reason)
