"""Errors of this library as plain values of JSON, and back: a fixed list of classes, no others."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from trident import errors
from trident.backends.rows import RefusedRowError, TooManyBadRowsError
from trident.errors import TridentError
from trident.log.errors import MetadataError
from trident.states.values import Token

_CLASSES: dict[str, type[TridentError]] = {
    name: found
    for name in errors.__all__
    if isinstance(found := getattr(errors, name), type) and issubclass(found, TridentError)
}
# Raised where partitions are emitted, and where rows are written.
for _found in (MetadataError, RefusedRowError, TooManyBadRowsError):
    _CLASSES[_found.__name__] = _found
_NAMES = {found: name for name, found in _CLASSES.items()}


def error_to_json(error: BaseException) -> dict[str, Any]:
    """An error as values of JSON that `error_from_json` takes; never fails.

    A class that isn't listed, as every one of a user's, is shown by name and text, as the nearest
    listed class it derives from: what fails an attempt still does.
    """
    for known in type(error).__mro__:
        if known not in _NAMES:
            continue
        if _fits(known, error.args) and (known is type(error) or not _is_text(known)):
            return {"error": _NAMES[known], "args": list(map(_to_json, error.args))}
        if _is_text(known):
            return {"error": _NAMES[known], "args": [text_of(error)]}
    return {"error": TridentError.__name__, "args": [text_of(error)]}


def error_from_json(form: object) -> TridentError:
    """The error that `error_to_json` gave the form of; any other form is shown as text.

    Nothing of it is run, looked up or imported: a name is one of the list, and a class is called
    only with as many values as it takes, each of its type.
    """
    match form:
        case {"error": str(name), "args": list(packed), **rest} if not rest and name in _CLASSES:
            args = tuple(map(_from_json, packed))
            if _fits(_CLASSES[name], args):
                return _CLASSES[name](*args)
    return TridentError(f"an error that this version does not know: {form!r:.500}")


def text_of(error: BaseException) -> str:
    """An error's class and text, also where the class can't show itself."""
    try:
        text = str(error)
    except Exception as second:
        text = f"its text can't be made ({type(second).__name__})"
    return f"{type(error).__name__}: {text}"


def _is_text(known: type[BaseException]) -> bool:
    """Whether a class has no fields of its own, only text."""
    return known.__init__ is Exception.__init__


def _fits(known: type[BaseException], values: Sequence[Any]) -> bool:
    """Whether a class takes these values, by the annotations of its constructor."""
    if _is_text(known):
        return all(type(value) is str for value in values)
    kinds = [kind for name, kind in get_type_hints(known.__init__).items() if name != "return"]
    return len(values) == len(kinds) and all(map(_is_a, values, kinds))


def _is_a(value: Any, kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_is_a(value, one) for one in get_args(kind))
    if get_origin(kind) is Sequence:
        [each] = get_args(kind)
        return type(value) is tuple and all(_is_a(item, each) for item in value)
    if kind is Token:
        return type(value) is Token and all(type(number) is int for number in value)
    return kind in (str, int, bool, type(None)) and type(value) is kind


def _to_json(value: Any) -> Any:
    if type(value) is Token:
        return {"token": list(value)}
    return list(value) if type(value) is tuple else value


def _from_json(value: Any) -> Any:
    match value:
        case {"token": [txid, attempt], **rest} if not rest:
            return Token(txid, attempt)
    return tuple(value) if type(value) is list else value
