"""Reads a state in parts, perhaps each in its own process, all as of one committed batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.keys import decode_key
from trident.states.map_state import Key
from trident.states.maps.reading import EMPTY
from trident.states.maps.stored_map import StoredMap
from trident.states.values import StateType


def read_part(
    state: StoredMap, record: ControlRecord | None, part: Any
) -> Iterator[tuple[list[Key], list[Any]]]:
    """Yield the keys of a part that have a value, and these values, page by page.

    The values are as of the last committed batch in `record`, which was read from the state before
    any part was. None is the record of a state that has not begun, or is Storm's: all of its
    entries count.

    Raises BatchMovedOn, perhaps after the last page, if values may be missing or too new: an opaque
    state is two batches ahead, any other state has begun one.
    """
    opaque = state.kind is StateType.OPAQUE
    cut = EMPTY.endless() if record is None else Cut.common([record])
    if record is not None and not opaque and record.token.txid > record.committed:
        raise BatchMovedOn(record.token)
    seen: set[bytes] = set()
    with state.snapshot():
        for page in state.committed(cut).pages(part):
            if part is None:  # only a part has each key once
                page = [(key, value) for key, value in dict(page).items() if key not in seen]
                seen.update(dict(page))
            found = [(decode_key(key), value) for key, value in page if value is not None]
            yield [key for key, _ in found], [value for _, value in found]
        after = state.control.ask()()
    if after is not None and state.has_moved(after):
        raise BatchMovedOn(after.token)
    if record is None or after is None:
        return
    same = after == record
    if opaque:  # no server with older data may have taken over
        same = after.log_id == record.log_id and after.committed >= record.committed
    if not same:
        raise BatchMovedOn(after.token)
    if state.removes or after.reached is not None:
        cut.check_nothing_removed(after)
