"""What a plain callable says about itself: its name and the types it returns."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from trident.errors import FieldError, OperationTypeError, described
from trident.tuples.field_types import ddl_type

T = TypeVar("T")


def callable_name(function: Callable[..., Any]) -> str:
    """What a callable is called in plans and errors.

    Examples
    --------
    >>> callable_name(str.upper), callable_name(lambda: 1)
    ('str.upper', '<lambda>')
    """
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name).rpartition("<locals>.")[2]


def identified(given: object) -> str:
    """How the log identifies an operation or a spout: by its class, without the module, and by its
    `identity`, if it has one: a text, or a method that returns one.

    Any other `identity` is an OperationTypeError.
    """
    own: Any = getattr(given, "identity", None)
    name = callable_name(type(given))
    if own is None:
        return name
    if callable(own):
        own = _returned(own)
    if not isinstance(own, str):
        what = f"{name}.identity is a text, or a method without arguments that returns one; found"
        advice = "The log keeps it to tell a changed operation; call a method of yours by another "
        raise OperationTypeError(what, described(own), (), f"{advice}name.")
    return f"{name}({own})"


def _returned(method: Callable[..., Any]) -> object:
    """What a method without arguments returns; any other method as it is."""
    try:
        inspect.signature(method).bind()
    except TypeError:
        return method
    return method()


def return_annotation(function: Callable[..., Any]) -> object:
    """The annotation of what a callable returns; None where there is no usable one."""
    if isinstance(function, type):
        return function
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target).get("return")
    except (NameError, TypeError, AttributeError):  # written as text that has no meaning here
        return None


def returned_class(function: Callable[..., T], base: type[Any]) -> type[T] | None:
    """The class that a callable is annotated to return, if it is a subclass of `base`."""
    made: Any = return_annotation(function)
    known = isinstance(made, type) and issubclass(made, base) and made is not base
    return made if known else None


def item_annotation(returned: object) -> object:
    """The type of the items of an iterable.

    Examples
    --------
    >>> from collections.abc import Iterator
    >>> item_annotation(Iterator[str]), item_annotation(list[int] | None), item_annotation(str)
    (<class 'str'>, <class 'int'>, None)
    """
    union = typing.get_origin(returned) in (typing.Union, types.UnionType)
    for option in typing.get_args(returned) if union else (returned,):
        origin, arguments = typing.get_origin(option), typing.get_args(option)
        if origin is tuple and arguments[-1:] != (Ellipsis,):
            continue
        if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
            return arguments[0]
    return None


def row_types(annotation: object) -> Sequence[str | None]:
    """Types of a row annotated ``tuple[str, int]``, or of a value annotated otherwise.

    An annotation that fields can't have says nothing: a wrong one is found where it matters.

    Examples
    --------
    >>> row_types(tuple[str, int]), row_types(list[str]), row_types(complex)
    (['string', 'long'], ['array<string>'], [None])
    """
    if typing.get_origin(annotation) is tuple:
        return [known_type(argument) for argument in typing.get_args(annotation)]
    return [known_type(annotation)]


def known_type(declared: object) -> str | None:
    """The DDL name of a type, None for one that fields can't be declared with.

    Examples
    --------
    >>> known_type(int), known_type("bigint"), known_type("void"), known_type(complex)
    ('long', 'long', None, None)
    """
    try:
        return ddl_type(declared)
    except FieldError:
        return None
