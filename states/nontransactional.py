"""Maps of bare values, which count a replay again."""

from __future__ import annotations

from trident.states.kinds.plain import PLAIN
from trident.states.stored_map import StoredMap


class NonTransactionalMap(StoredMap):
    """A map state of values alone: the smallest, at least once.

    A replayed batch is applied again. Right for values that do not depend on the stored one, such
    as the last reading of a sensor; readers may see a batch before it commits.

    Parameters
    ----------
    backing : IBackingMap
        The store.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.
    """

    kept_as = PLAIN
