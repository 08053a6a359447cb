"""The assemblies that come with the library: several steps under one name."""

from __future__ import annotations

from trident.api.stream import Stream
from trident.errors import PlanError
from trident.operations.kept_tuples import FirstSortedTuples, FirstTuples
from trident.plan.step_checks import check_ordered, check_selection
from trident.tuples.fields import Fields


class FirstN:
    """The first `n` tuples of each batch: ``stream.applyAssembly(FirstN(10, "count"))``.

    Each partition keeps its first ones, and one partition the first of these, which it emits in
    order. If the batch has fewer tuples all are emitted.

    Parameters
    ----------
    n : int
        How many.
    sortField : str, optional
        The field to sort by; null comes last. Without it the order is that of arrival.
    reverse : bool
        Whether the greatest come first.

    Raises
    ------
    PlanError
        When `n` is no whole number from 1; for `reverse` without a field; when applied, for a
        field that the stream hasn't got.

    Examples
    --------
    >>> from trident import FixedBatchSpout, TridentTopology
    >>> words = TridentTopology().newStream("s", FixedBatchSpout("word string, n long", 3))
    >>> words.applyAssembly(FirstN(2, "n", reverse=True)).getOutputFields()
    Fields('word string, n long')
    """

    def __init__(self, n: int, sortField: str | None = None, reverse: bool = False) -> None:
        if type(n) is not int or n < 1:
            raise PlanError("FirstN: how many is a whole number from 1, found", repr(n))
        if reverse and sortField is None:
            advice = 'Name the field to sort by: FirstN(10, "count", reverse=True).'
            raise PlanError("FirstN: reverse was given without a sortField", "", (), advice)
        self.n = n
        self.sortField = sortField
        self.reverse = reverse

    def apply(self, stream: Stream) -> Stream:
        """Add the steps to a stream."""
        fields = stream.getOutputFields()
        kept = Fields(*fields.names)
        within = stream.partitionAggregate(kept, self._aggregator(fields), fields)
        return within.global_().partitionAggregate(kept, self._aggregator(fields), fields)

    def _aggregator(self, fields: Fields) -> FirstTuples:
        if self.sortField is None:
            return FirstTuples(self.n)
        check_selection("FirstN", Fields(self.sortField), fields)
        advice = "Sort by a field of numbers, text, dates or the like."
        check_ordered("FirstN", fields.select(self.sortField), advice)
        label = f"FirstN({self.n}, {self.sortField}{', reverse=True' * self.reverse})"
        return FirstSortedTuples(self.n, fields.index(self.sortField), self.reverse, label)
