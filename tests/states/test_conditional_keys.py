"""A store of conditional writes that takes the fields of keys, whatever these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trident.states import IBackingMap, OpaqueMap
from trident.states.keys import encode_key


class Versioned(IBackingMap):
    """Entries with the number of their writes."""

    codec = None

    def __init__(self) -> None:
        self.kept: dict[bytes, tuple[Any, int]] = {}

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return [self.kept.get(encode_key(key), (None, 0))[0] for key in keys]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        for key, value in zip(keys, values, strict=True):
            name = encode_key(key)
            self.kept[name] = value, self.kept.get(name, (None, 0))[1] + 1

    def multiGetVersioned(self, keys: Sequence[Any]) -> list[tuple[Any, Any]]:
        return [self.kept.get(encode_key(key), (None, 0)) for key in keys]

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        found = [self.kept.get(encode_key(key), (None, 0))[1] for key in keys]
        right = [one == other for one, other in zip(found, versions, strict=True)]
        for key, value, same in zip(keys, values, right, strict=True):
            if same:
                self.multiPut([key], [value])
        return right


@pytest.mark.parametrize("keys", [[([1, 2],), ([3],)], [({"a": 1},)], [(1,), (True,), (1.0,)]])
def test_keys_may_be_lists_structs_and_equal_in_python(keys: list[Any]) -> None:
    state = OpaqueMap(Versioned())
    for txid in (1, 2):
        state.beginCommit(txid)
        state.multiPut(keys[:txid], [f"{txid}{n}" for n in range(len(keys[:txid]))])
        state.multiPut(keys[txid:], [f"{txid} other"] * len(keys[txid:]))
        state.commit(txid)
    assert state.multiGet(keys)[0] == "20"
    assert None not in state.multiGet(keys)
