"""What can be asked of a server, as OpenAPI describes it: ``openapi.json``, beside this file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

import orjson

_FILE = files(__package__).joinpath("openapi.json")


def openapi(routes: Collection[tuple[str, str]]) -> Mapping[str, Any]:
    """The description, by OpenAPI 3.1, of those of the URLs that are answered.

    Examples
    --------
    >>> list(openapi([("GET", "/drpc/{function}"), ("GET", "/healthz")])["paths"])
    ['/drpc/{function}', '/healthz']
    """
    described: dict[str, Any] = orjson.loads(_FILE.read_bytes())
    answered = {
        path: {name: each for name, each in methods.items() if (name.upper(), path) in routes}
        for path, methods in described["paths"].items()
    }
    return {**described, "paths": {path: each for path, each in answered.items() if each}}
