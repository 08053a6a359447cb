"""The one form in which tuples of any fields travel between bolts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trident.errors import EmittedValueError
from trident.operations.interfaces import Filter, Function, TridentCollector
from trident.states.typed_json import needs_tags, tagged, untagged
from trident.transactional.bolts import BoltTuple
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields

CARRIED = Fields.of("source string, direct long, values string")
"""The component and stream that emitted a tuple, the task for which it is, and its values.

The first value is left out: it is the attempt, or the request's id, which every bolt knows.
"""
NAMES = ", ".join(CARRIED.names)


def source_of(component: str, stream: str) -> str:
    """The name of a component's stream in this form."""
    return json.dumps([component, stream])


def pack(what: str, values: Sequence[Any]) -> str:
    """Write the values of a tuple as JSON with their types."""
    try:
        needs_tags(list(values))
        return json.dumps(tagged(list(values)), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        problem = f"emitted what can't be sent to other tasks: {error}"
        raise EmittedValueError(what, problem) from error


def unpack(values: str) -> list[Any]:
    """Read the values that :func:`pack` was given."""
    found: list[Any] = untagged(json.loads(values))
    return found


@dataclass(frozen=True)
class Reader:
    """Makes tuples for bolts of this form."""

    fields: Mapping[str, Fields]

    @cached_property
    def _types(self) -> dict[str, type[BoltTuple]]:
        return {
            source: type(
                "BoltTuple",
                (BoltTuple,),
                {"__slots__": (), "_fields": fields, "source": tuple(json.loads(source))},
            )
            for source, fields in self.fields.items()
        }

    def read(self, id: object, carried: Sequence[Any]) -> BoltTuple:
        """Return the tuple, with the id before its values."""
        source, _, values = carried
        return self._types[source]([id, *unpack(values)])

    def __reduce__(self) -> tuple[Any, ...]:
        return Reader, (dict(self.fields),)


class Carry(Function):
    """Brings tuples of a spout, or a request, into this form."""

    def __init__(self, source: str) -> None:
        self._source = source

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        collector.emit((self._source, None, pack("the spout", tuple)))


class Subscribed(Filter):
    """Keeps what comes from some sources."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = frozenset(sources)

    def isKeep(self, tuple: TridentTuple) -> bool:
        return tuple[0] in self._sources
