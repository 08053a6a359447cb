"""Functions of whole record batches of Arrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trident.errors import OperationTypeError, described
from trident.operations.annotations import callable_name
from trident.operations.interfaces import Operation

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Vectorised(Operation):
    """A function of record batches in place of one of tuples; see `vectorised`."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch]
    deterministic: bool = True

    @property
    def label(self) -> str:
        """The function for plans and errors."""
        return f"vectorised({callable_name(self.function)})"


def vectorised(
    function: Callable[[pa.RecordBatch], pa.RecordBatch], *, deterministic: bool = True
) -> Vectorised:
    """A function of whole record batches, for ``flatMap``: no tuple of them becomes Python objects.

    Parameters
    ----------
    function : callable
        Is handed a ``pyarrow.RecordBatch`` of some tuples of a partition, a column for each field,
        and returns one with a column for each output field, of any number of rows. How many tuples
        are in one is left to the engine, so what it makes of a tuple must not depend on the others.
        Columns are taken by position. It runs where the tuples are, must pickle, and may run again.
    deterministic : bool
        False for a function whose result differs when a batch is replayed.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from trident import FixedBatchSpout, TridentTopology, vectorised
    >>> def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    ...     some = batch.filter(pc.greater(batch["n"], 1))
    ...     return pa.record_batch([pc.multiply(some["n"], 2)], ["twice"])
    >>> stream = TridentTopology().newStream("s", FixedBatchSpout("n long", 3, [1], [2], [3]))
    >>> stream.flatMap(vectorised(doubled), "twice long").getOutputFields()
    Fields('twice long')
    """
    if isinstance(function, type | Operation) or not callable(function):
        what = "vectorised: expected a function of a record batch, found"
        raise OperationTypeError(what, described(function), (), "Write vectorised(function).")
    return Vectorised(function, deterministic)
