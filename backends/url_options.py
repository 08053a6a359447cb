"""The options of a state's URL: those that every scheme takes, and the scheme's own, typed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trident.states.errors import StateURLError
from trident.states.printable import is_secret
from trident.states.serializers import JSONSerializer, PickleSerializer
from trident.states.values import StateType

_KINDS = {kind.value.replace("-", ""): kind for kind in StateType}
_SERIALIZERS = {"json": JSONSerializer, "pickle": PickleSerializer}
_COUNTS = ("cache_size", "max_get", "max_put")
_WRITERS = {"trident": "trident", "storm": "storm"}
_HOSTS = {"driver": "driver", "executor": "executor"}
_COMMON = ("kind", "prefix", "serializer", "snapshot_key", "written_by", "hosted", *_COUNTS)
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class URLOptions:
    """What the options of a URL say, converted."""

    kind: StateType
    """How the state keeps its values; opaque unless ``kind`` says otherwise."""
    prefix: str | None
    """None where it wasn't given, and the state's name is to be taken; empty for bare keys."""
    state: dict[str, Any]
    """Parameters of :class:`~trident.states.maps.factory.MapStateFactory` that were given:
    `cache_size`, `max_get`, `max_put`, `serializer`, `snapshot_key`, `written_by`, `hosted`."""
    own: dict[str, Any]
    """The scheme's own options that were given."""


def read_options(scheme: str, given: Mapping[str, str], own: Mapping[str, type]) -> URLOptions:
    """Convert the options of a URL."""
    _check_names(scheme, given, sorted({*_COMMON, *own}))
    state: dict[str, Any] = {
        name: _count(scheme, name, given[name]) for name in _COUNTS if name in given
    }
    if "serializer" in given:
        state["serializer"] = _choice(scheme, "serializer", given, _SERIALIZERS)()
    if "snapshot_key" in given:
        state["snapshot_key"] = (_str(scheme, "snapshot_key", given["snapshot_key"]),)
    if "written_by" in given:
        state["written_by"] = _choice(scheme, "written_by", given, _WRITERS)
    if "hosted" in given:
        state["hosted"] = _choice(scheme, "hosted", given, _HOSTS)
    return URLOptions(
        _choice(scheme, "kind", given, _KINDS) if "kind" in given else StateType.OPAQUE,
        given.get("prefix"),
        state,
        _converted(scheme, given, own),
    )


def read_own_options(
    scheme: str, given: Mapping[str, str], own: Mapping[str, type]
) -> dict[str, Any]:
    """Convert the options of a URL that is no state's: the scheme's own, and no others."""
    _check_names(scheme, given, sorted(own))
    return _converted(scheme, given, own)


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


def _converted(scheme: str, given: Mapping[str, str], own: Mapping[str, type]) -> dict[str, Any]:
    kinds = {key: kind for key, kind in own.items() if key in given}
    return {key: _READERS[kind](scheme, key, given[key]) for key, kind in kinds.items()}


def _choice(scheme: str, name: str, given: Mapping[str, str], choices: Mapping[str, Any]) -> Any:
    chosen = given[name]
    if chosen not in choices:
        problem = "can't be" if chosen else "is empty"
        raise StateURLError(f"{scheme}: option {name} {problem}", chosen, tuple(choices))
    return choices[chosen]


def _refused(scheme: str, name: str, text: str, due: str) -> StateURLError:
    shown = "" if is_secret(name) else f", found {text!r}"
    return StateURLError(f"{scheme}: option {name} takes {due}{shown}")


def _count(scheme: str, name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise _refused(scheme, name, text, "a whole number, 0 or more")
    return int(text)


def _int(scheme: str, name: str, text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,18}", text):
        raise _refused(scheme, name, text, "a whole number")
    return int(text)


def _float(scheme: str, name: str, text: str) -> float:
    number = float(text) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", text) else math.inf
    if not math.isfinite(number):
        raise _refused(scheme, name, text, "a number")
    return number


def _bool(scheme: str, name: str, text: str) -> bool:
    if text not in _BOOLS:
        raise _refused(scheme, name, text, "true or false")
    return _BOOLS[text]


def _str(scheme: str, name: str, text: str) -> str:
    if not text:
        raise _refused(scheme, name, text, "a text that is not empty")
    return text


_READERS: Mapping[type, Callable[[str, str, str], Any]] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
}
