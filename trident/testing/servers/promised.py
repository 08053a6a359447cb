"""Which server a test has: one that is promised by its address, else one that is started here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from trident.states.errors import TridentError
from trident.testing.servers.process import MissingServer, accepts, refuse_where_quick


class Served(Protocol):
    """What tests are given: where the server is."""

    @property
    def url(self) -> str:
        """The address that `state_from_url` takes."""


@dataclass(frozen=True)
class PromisedServer:
    """A server that someone else runs."""

    url: str


@dataclass(eq=False, repr=False)
class BrokenPromise(TridentError):
    """A server is promised by its address, and none is there.

    `variable` is the variable of the environment that holds the address.
    """

    variable: str
    place: str

    _template = (
        "{variable} promises a server, but none is at {place}; start it, or unset the variable"
    )


@contextmanager
def served(name: str, made: Callable[[], AbstractContextManager[Served]]) -> Iterator[Served]:
    """Give the server of TRIDENT_TEST_<name>_URL, else what `made` makes and starts.

    Raises BrokenPromise where that variable is set and no server is there.
    """
    refuse_where_quick()
    variable = f"TRIDENT_TEST_{name}_URL"
    promised = os.environ.get(variable)
    if promised:
        _must_be_there(variable, promised)
        yield PromisedServer(promised)
        return
    with ExitStack() as running:
        try:
            server = running.enter_context(made())
        except MissingServer as missing:
            advice = f"{missing.advice}. Or name one that runs in {variable}"
            raise MissingServer(missing.problem, advice) from None
        yield server


def _must_be_there(variable: str, url: str) -> None:
    for host, port in re.findall(r"([^/@,]+):(\d+)(?=[,/?]|$)", url.partition("://")[2]):
        if not accepts(host, int(port)):
            raise BrokenPromise(variable, f"{host}:{port}")
