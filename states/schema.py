"""Values whose form changes: each is stored with its form's version, and upgraded when read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trident.states.errors import CorruptStateError, FailedException
from trident.states.expiry import KeepUntil
from trident.states.keys import decode_key
from trident.states.printable import masked
from trident.states.values import Versioned, own_copy


@dataclass(frozen=True)
class ValueSchema:
    """The present form of a state's values, and how values of earlier forms become it.

    A value is stored with the version of its form, from version 2 on. So a store may hold values of
    several forms: a value is upgraded whenever it is read, and stored in the new form when it is
    updated.

    Parameters
    ----------
    version : int
        The version of the form, from 2. A value that is stored without one has version 1.
    upgrade : callable
        Takes a value and its version, which is less than `version`; returns the value in the form
        of `version`, or None to remove it. The same values give the same.

    Examples
    --------
    >>> from trident.backends.memory import MemoryStore
    >>> from trident.states import MapStateFactory
    >>> store = MemoryStore("visits")
    >>> state = MapStateFactory(store).makeState()
    >>> state.beginCommit(1)
    >>> state.multiPut([("a",)], [3])
    >>> state.commit(1)
    >>> pairs = ValueSchema(2, lambda count, version: [count, 0])
    >>> MapStateFactory(store, schema=pairs).makeState().multiGet([("a",)])
    [[3, 0]]
    """

    version: int
    upgrade: Callable[[Any, int], Any]

    def kept(self, value: Any) -> Any:
        """Return a value as it is stored: with its version."""
        return None if value is None else Versioned(self.version, value)

    def current(self, key: bytes, kept: Any) -> Any:
        """Return the present form of a stored value."""
        version, value = kept if type(kept) is Versioned else (1, kept)
        if version == self.version or value is None:
            return value
        if version > self.version:
            found = f"it is of schema_version {version}, and this code knows {self.version} only"
            raise _unreadable(key, found, "Run the code that wrote it.")
        try:
            if type(value) is KeepUntil:
                return KeepUntil(self.upgraded(key, own_copy(value.value), version), value.until)
            return self.upgraded(key, own_copy(value), version)
        except (FailedException, CorruptStateError):
            raise
        except Exception as error:  # of a class that sweeps catch, or no batch could run any more
            said = f"{type(error).__name__}: {masked(str(error)):.300}"
            found = f"upgrade() from schema_version {version} to {self.version} raised {said}"
            advice = "Have upgrade() take this value, or return None to remove it; start again."
            raise _unreadable(key, found, advice) from error

    def upgraded(self, key: bytes, value: Any, version: int) -> Any:
        """Return the present form of a key's value."""
        return self.upgrade(value, version)


def _unreadable(key: bytes, found: str, advice: str) -> CorruptStateError:
    return CorruptStateError(f"the value of the key {decode_key(key)!r}", found, advice)
