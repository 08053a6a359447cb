"""Converts the options of a state's URL: those of every scheme, and the scheme's own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trident.states.errors import StateURLError
from trident.states.maps.factory import MapStateFactory
from trident.states.printable import is_secret
from trident.states.serializers import JSONSerializer, PickleSerializer
from trident.states.values import StateType

Reader = Callable[[str, str, str], Any]
"""Converts the text of an option, given the URL's scheme and the option's name."""


@dataclass(frozen=True)
class URLOptions:
    """What the options of a URL say, converted."""

    kind: StateType
    """How the state keeps its values; opaque unless ``kind`` says otherwise."""
    prefix: str | None
    """None if it is not given: then it is the state's name. Empty for bare keys."""
    state: dict[str, Any]
    """Parameters of :class:`~trident.states.maps.factory.MapStateFactory` that were given:
    `cache_size`, `max_get`, `max_put`, `serializer`, `snapshot_key`, `written_by`, `hosted`."""
    own: dict[str, Any]
    """The scheme's own options that were given."""

    def factory(self, store: type[Any], **place: Any) -> MapStateFactory:
        """Return the factory over a `store` with these options, at a `place` that the URL names."""
        given = {**place, "prefix": self.prefix, **self.own, **self.state}
        return MapStateFactory.over(store, self.kind, given)


def read_options(scheme: str, given: Mapping[str, str], own: Mapping[str, type]) -> URLOptions:
    """Convert the options of a URL."""
    _check_names(scheme, given, sorted({*_COMMON, *own}))
    state = _convert(scheme, given, _COMMON)
    return URLOptions(
        state.pop("kind", StateType.OPAQUE),
        state.pop("prefix", None),
        state,
        _convert(scheme, given, {name: _READERS[kind] for name, kind in own.items()}),
    )


def read_own_options(
    scheme: str, given: Mapping[str, str], own: Mapping[str, type]
) -> dict[str, Any]:
    """Convert the options of another URL than a state's: the scheme's own, and no others."""
    _check_names(scheme, given, sorted(own))
    return _convert(scheme, given, {name: _READERS[kind] for name, kind in own.items()})


def _check_names(scheme: str, given: Mapping[str, str], known: list[str]) -> None:
    before = ""
    for name in given:
        if name not in known and is_secret(before):
            # It may be the rest of a secret with a bare &, so it is not shown.
            what = f"{scheme}: the option after {before} is unknown"
            raise StateURLError(what, "", known, "In a secret write & as %26.")
        if name not in known:
            raise StateURLError(f"{scheme}: unknown option", name, known)
        before = name


def _convert(
    scheme: str, given: Mapping[str, str], readers: Mapping[str, Reader]
) -> dict[str, Any]:
    return {
        name: read(scheme, name, given[name]) for name, read in readers.items() if name in given
    }


def _one_of(choices: Mapping[str, Any]) -> Reader:
    def read(scheme: str, name: str, text: str) -> Any:
        if text not in choices:
            problem = "can't be" if text else "is empty"
            raise StateURLError(f"{scheme}: option {name} {problem}", text, tuple(choices))
        return choices[text]

    return read


def _matching(pattern: str, convert: Callable[[str], Any], allowed: str) -> Reader:
    def read(scheme: str, name: str, text: str) -> Any:
        value = convert(text) if re.fullmatch(pattern, text) else None
        if value is None or value in (math.inf, -math.inf):
            shown = "" if is_secret(name) else f", found {text!r}"
            raise StateURLError(f"{scheme}: option {name} takes {allowed}{shown}")
        return value

    return read


_TEXT = "(?s).+"
_NO_TEXT = "a text that is not empty"
_COUNT = _matching("[0-9]{1,18}", int, "a whole number, 0 or more")
_COMMON: Mapping[str, Reader] = {
    "kind": _one_of({kind.value.replace("-", ""): kind for kind in StateType}),
    "prefix": _matching("(?s).*", str, "any text"),
    "serializer": _one_of({"json": JSONSerializer(), "pickle": PickleSerializer()}),
    "snapshot_key": _matching(_TEXT, lambda text: (text,), _NO_TEXT),
    "written_by": _one_of({name: name for name in ("trident", "storm")}),
    "hosted": _one_of({name: name for name in ("driver", "executor")}),
    **dict.fromkeys(("cache_size", "max_get", "max_put"), _COUNT),
}
"""The options of every scheme."""
_READERS: Mapping[type, Reader] = {
    bool: _matching("true|1|false|0", {"true", "1"}.__contains__, "true or false"),
    int: _matching("-?[0-9]{1,18}", int, "a whole number"),
    float: _matching(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", float, "a number"),
    str: _matching(_TEXT, str, _NO_TEXT),
}
