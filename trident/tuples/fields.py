"""Names, and where they are known types, of the values in a tuple."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from types import MappingProxyType
from typing import TypeAlias

from trident.errors import FieldError
from trident.tuples.field_types import ddl_type, top_level

FieldsLike: TypeAlias = "Fields | str | Iterable[str]"


class Fields:
    """The ordered names of a tuple's values; immutable, hashable, picklable.

    Parameters
    ----------
    *names : str
        Fields whose type is not given.
    **typed : type or str
        Fields with their type: a Python type (``str int float bool bytes``, ``list[str]`` …) or
        a Spark one (``"long"``, ``"array<string>"``).

    Raises
    ------
    FieldError
        For a name given twice, an invalid name, or an unknown type.

    Notes
    -----
    A type is needed only where a field leaves a fused Python stage on Spark, and is then mostly
    known from the operation. Where it is known, a value of another type stops the run, on either
    engine; only a whole number becomes a float. Two `Fields` are equal when names and types are.

    Examples
    --------
    >>> Fields("word", n=int)
    Fields('word, n long')
    >>> Fields.of("word string, n long").names
    ('word', 'n')
    """

    __slots__ = ("_index", "names", "types")

    names: tuple[str, ...]
    types: Mapping[str, str | None]

    def __init__(self, *names: str, **typed: object) -> None:
        for name in names:
            if not isinstance(name, str) or "," in name or name.split() != [name]:
                advice = 'Several names or types in one string are written Fields.of("a, b long").'
                what = f"Fields: a field's name can't be {name!r:.60}"
                raise FieldError(what, "", (), advice)
        self._set([*((name, None) for name in names), *typed.items()])

    def _set(self, pairs: Iterable[tuple[str, object]]) -> None:
        types: dict[str, str | None] = {}
        for name, declared in pairs:
            if name in types:
                raise FieldError("duplicate field", name, (), "Give each field its own name.")
            types[name] = ddl_type(declared)
        self.names = tuple(types)
        self.types = MappingProxyType(types)
        self._index = {name: index for index, name in enumerate(types)}

    @classmethod
    def typed(cls, pairs: Iterable[tuple[str, object]]) -> Fields:
        """Fields of (name, type) pairs; a type of None is not known.

        Examples
        --------
        >>> Fields.typed([("word", str), ("n", None)])
        Fields('word string, n')
        """
        fields = cls.__new__(cls)
        fields._set(pairs)
        return fields

    @classmethod
    def of(cls, fields: FieldsLike) -> Fields:
        """Make `Fields` of what calls take for fields.

        Parameters
        ----------
        fields : Fields, str, or iterable of str
            A string holds names separated by commas, each with or without its type.

        Examples
        --------
        >>> Fields.of("word"), Fields.of("a, b array<long>"), Fields.of(["a", "b"])
        (Fields('word'), Fields('a, b array<long>'), Fields('a, b'))
        """
        if isinstance(fields, Fields):
            return fields
        if isinstance(fields, str):
            return cls.typed(map(_name_and_type, top_level(fields)))
        try:
            names = list(fields)
        except TypeError:
            advice = 'Write "a", "a, b long", ["a", "b"], or Fields(...).'
            raise FieldError("fields expected, found", repr(fields), (), advice) from None
        return cls(*names)

    def index(self, name: str) -> int:
        """The position of a field.

        Raises
        ------
        FieldError
            When no field has that name.
        """
        try:
            return self._index[name]
        except KeyError:
            raise FieldError("unknown field", name, self.names) from None

    def select(self, names: FieldsLike) -> Fields:
        """These fields only, in the order asked for, with their types here.

        Examples
        --------
        >>> Fields.of("a string, b long").select(["b", "a"])
        Fields('b long, a string')
        """
        chosen = Fields.of(names).names
        for name in chosen:
            self.index(name)
        return Fields.typed((name, self.types[name]) for name in chosen)

    def with_types(self, known: Iterable[str | None]) -> Fields:
        """These fields; those without a type get one of `known`, which goes by position.

        Examples
        --------
        >>> Fields.of("a int, b, c").with_types(["long", "string"])
        Fields('a int, b string, c')
        """
        types = chain(known, repeat(None))
        return Fields.typed(
            (name, declared or inferred)
            for (name, declared), inferred in zip(self.types.items(), types, strict=False)
        )

    def __add__(self, other: FieldsLike) -> Fields:
        more = Fields.of(other)
        return Fields.typed([*self.types.items(), *more.types.items()])

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fields):
            return NotImplemented
        return tuple(self.types.items()) == tuple(other.types.items())

    def __hash__(self) -> int:
        return hash(tuple(self.types.items()))

    def __str__(self) -> str:
        return ", ".join(self.names)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {kind}" if kind else name for name, kind in self.types.items())
        return f"Fields({shown!r})" if shown else "Fields()"

    def __reduce__(self) -> tuple[object, ...]:
        return Fields.typed, (tuple(self.types.items()),)


def _name_and_type(part: str) -> tuple[str, str | None]:
    name, _, declared = part.strip().partition(" ")
    if not name:
        raise FieldError("a field has no name; found", part or "''")
    return name, declared.strip() or None
