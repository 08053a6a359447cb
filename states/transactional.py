"""Maps that stay exact when a replayed batch holds the same tuples as before."""

from __future__ import annotations

from trident.states.kinds.transactional import TRANSACTIONAL
from trident.states.stored_map import StoredMap


class TransactionalMap(StoredMap):
    """A map state that is exact for sources whose replays are identical.

    An entry holds its value and the batch that wrote it: a replay finds its batch there and leaves
    the entry alone. Takes less room than an opaque map; readers may see a batch before it commits.

    Parameters
    ----------
    backing : IBackingMap
        The store.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.
    """

    kept_as = TRANSACTIONAL
