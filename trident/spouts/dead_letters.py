"""The dead letters that a topology has kept: read, and as a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.operations.interfaces import TridentCollector
from trident.operations.letter_folder import LetterFolder
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout, SpoutKind
from trident.states.errors import CorruptStateError, StateError
from trident.states.state import StateFactory
from trident.states.typed_json import untagged
from trident.states.values import Token
from trident.tuples.fields import Fields, FieldsLike


class KeptLetter(NamedTuple):
    """A dead letter that a map or a folder holds."""

    batch: int
    number: int
    step: str
    error: str
    tuple: Mapping[str, Any]
    """The fields as JSON has them, with the tags of `typed_json`."""


def read_letters(state: Any) -> list[KeptLetter]:
    """The committed dead letters of a state, in the order of their batches.

    Raises CorruptStateError for any other entry.
    """
    found = []
    for *key, value in state.getTuples():
        match key, value:
            case [int(batch), int(number)], {"step": str(step), "error": str(error), **others}:
                fields = _fields(str(others.get("tuple")))
                found.append(KeptLetter(batch, number, step, error, fields))
            case _:
                raise CorruptStateError("a dead letter", f"{key} and {value!r:.80}")
    return sorted(found, key=attrgetter("batch", "number"))


def _fields(text: str) -> Mapping[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise CorruptStateError("a dead letter's tuple", f"{text!r:.80} ({error})") from error


class DeadLetterSpout(ITridentSpout):
    """Emits the dead letters that a topology has kept before the start once more.

    Merge it to the stream before the step that has failed with them. The letters are not removed.

    Parameters
    ----------
    url : str
        The map or the folder that keeps them: the URL given to ``start(dead_letters=…)``, with
        ``prefix=`` and the name of the state, ``dead_letters.`` and the id of the group.
    fields : Fields
        The fields of the tuples at the step. Letters with other fields belong to other steps, and
        are left out.

    Notes
    -----
    A batch holds the letters of one batch of the topology. The log knows which, so a restart goes
    on with the next ones, and with letters that were kept since.

    Examples
    --------
    >>> again = DeadLetterSpout("sqlite:letters.db?prefix=dead_letters.texts", "text string")
    >>> again.getOutputFields(), again.kind
    (Fields('text string'), 'transactional')
    """

    kind: ClassVar[SpoutKind] = "transactional"

    def __init__(self, url: str, fields: FieldsLike) -> None:
        parsed = StateURL.parse(url)
        self._factory: StateFactory = LetterFolder.of(parsed) or state_from_url(parsed)
        self._fields = Fields.of(fields)

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _LetterCoordinator([letter.batch for letter in self._letters()])

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return _LetterEmitter(self._letters, self._fields.names)

    def getOutputFields(self) -> Fields:
        return self._fields

    def _letters(self) -> list[KeptLetter]:
        with closing(self._factory.makeState({}, None, 0, 1)) as state:
            return read_letters(state)


class _LetterCoordinator(BatchCoordinator):
    """Takes one batch of the topology that has letters after the other."""

    def __init__(self, batches: Sequence[int]) -> None:
        self._batches = batches
        self._last: int | None = None

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        self._last = int(prevMetadata["last"]) if prevMetadata else 0
        batch = next(self._following(), None)
        self._last = batch or self._last
        return {"batch": batch, "last": self._last}

    def isReady(self, txid: int) -> bool:
        return self._last is None or any(self._following())

    def lag(self, txid: int) -> int | None:
        return None if self._last is None else sum(1 for _ in self._following())

    def _following(self) -> Iterator[int]:
        return (batch for batch in self._batches if batch > (self._last or 0))


class _LetterEmitter(Emitter):
    """Emits the letters of a batch that have these fields."""

    def __init__(self, read: Callable[[], Sequence[KeptLetter]], names: Sequence[str]) -> None:
        self._read = read
        self._names = names
        self._of: Mapping[int, Sequence[KeptLetter]] = {}

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> None:
        batch = metadata["batch"]
        if batch is None:
            return
        if batch not in self._of:  # the coordinator may have read the letters later
            self._of = {key: [*own] for key, own in groupby(self._read(), attrgetter("batch"))}
        if batch not in self._of:
            raise StateError(
                f"the dead letters of batch {batch}, put back by {token}, were removed"
            )
        for letter in self._of[batch]:
            if letter.tuple.keys() == set(self._names):
                collector.emit([untagged(letter.tuple[name]) for name in self._names])
