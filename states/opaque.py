"""Maps that stay exact when a replayed batch holds other tuples than before."""

from __future__ import annotations

from trident.states.kinds.opaque import OPAQUE
from trident.states.stored_map import StoredMap


class OpaqueMap(StoredMap):
    """A map state that is exact for every source, whatever a replay brings.

    An entry holds its value, the committed value before it, and who wrote it; so a later attempt,
    with other tuples or none for this key, starts again from what was committed.

    Parameters
    ----------
    backing : IBackingMap
        The store.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.

    Examples
    --------
    >>> from trident.states import MemoryMap, PutUpdater
    >>> ages = OpaqueMap(MemoryMap("ages"))
    >>> ages.beginCommit(1)
    >>> ages.multiUpdate([("rex",)], [PutUpdater(3)])
    [3]
    >>> ages.commit(1)
    >>> ages.multiGet([("rex",), ("tom",)])
    [3, None]
    """

    kept_as = OPAQUE
