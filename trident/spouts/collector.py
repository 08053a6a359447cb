"""What a spout emits into: tuples one by one, or whole columns of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trident.errors import EmittedValueError, described
from trident.operations.emitted import check_row
from trident.operations.interfaces import TridentCollector
from trident.tuples.block import MANY, Block, block_of, joined
from trident.tuples.fields import Fields


class SpoutCollector(TridentCollector):
    """Takes the tuples that a spout emits for one batch, or for one partition of it.

    Parameters
    ----------
    spout : str
        How errors name the spout.
    fields : Fields
        The output fields.

    Examples
    --------
    >>> collector = SpoutCollector("the spout of words", Fields("word", "n"))
    >>> collector.emit(["cat", 1])
    >>> collector.emitColumns({"n": [2, 3], "word": ["dog", "owl"]})
    >>> list(collector.block().tuples(["word", "n"]))
    [('cat', 1), ('dog', 2), ('owl', 3)]
    """

    def __init__(self, spout: str, fields: Fields) -> None:
        self._spout = spout
        self._names = fields.names
        self._width = len(fields)
        self._rows: list[tuple[Any, ...]] = []
        self._blocks: list[Block] = []

    def emit(self, values: Sequence[Any]) -> None:
        if type(values) is not tuple or len(values) != self._width:
            values = check_row(self._spout, values, self._width)
        self._rows.append(values)

    def emitColumns(self, columns: Any) -> None:
        """Emit many tuples at once, which costs far less than one by one.

        Parameters
        ----------
        columns : mapping of str to sequence, or pyarrow.RecordBatch
            For each output field its values, all of one length; or an Arrow batch with the
            output fields as columns.

        Raises
        ------
        EmittedValueError
            Where the columns are others than the output fields, or differ in length.
        """
        self._add(self._block(columns))

    def block(self) -> Block:
        """Everything emitted so far."""
        return joined(self.blocks())

    def blocks(self) -> Sequence[Block]:
        """The same, in as many blocks as it was emitted in."""
        self._flush()
        return tuple(self._blocks)

    def _add(self, block: Block) -> None:
        if block.length:
            self._flush()
            self._blocks.append(block)

    def _flush(self) -> None:
        if self._rows:
            self._blocks.append(block_of(self._names, self._rows))
            self._rows = []

    def _block(self, columns: Any) -> Block:
        if isinstance(columns, Mapping):
            columns = {name: self._given(name, values) for name, values in columns.items()}
            names, lengths = tuple(columns), {len(values) for values in columns.values()}
        elif hasattr(columns, "schema") and hasattr(columns, "num_rows"):
            names, lengths = tuple(columns.schema.names), {columns.num_rows}
        else:
            problem = f"emitted {described(columns)}, expected columns by field"
            raise EmittedValueError(self._spout, problem)
        if sorted(map(str, names)) != sorted(self._names):
            due, found = ", ".join(self._names), ", ".join(map(str, names)) or "none"
            raise EmittedValueError(self._spout, f"emitted the columns {found}, expected {due}")
        if len(lengths) > 1:
            found = ", ".join(f"{name}: {len(columns[name])}" for name in names)
            raise EmittedValueError(self._spout, f"emitted columns that differ in length: {found}")
        length = lengths.pop() if lengths else 0
        lists, arrays = {}, {}
        for name in self._names:
            column = columns[name]
            array = self._array(column) if _is_arrow(column) else None
            if array is not None:
                arrays[name] = array
            else:
                lists[name] = _listed(column) if _is_arrow(column) else column
        return Block(lists, length, arrays)

    def _given(self, name: Any, values: Any) -> Sequence[Any]:
        """A column as Arrow, or as a new list, as the spout may change its own afterwards."""
        if _is_arrow(values):
            return values  # type: ignore[no-any-return]
        if hasattr(values, "tolist"):  # of NumPy
            values = values.tolist()
        if isinstance(values, Sequence) and not isinstance(values, str | bytes):
            return list(values)
        problem = f"emitted {described(values)} as the column {name}, expected a list of values"
        raise EmittedValueError(self._spout, problem)

    def _array(self, column: Any) -> Any:
        """The form of an Arrow column that a block keeps; None if a list is better."""
        from trident.tuples.arrow_columns import plain

        return plain(column) if len(column) >= MANY else None


def _is_arrow(column: Any) -> bool:
    return hasattr(column, "to_pylist")


def _listed(column: Any) -> Sequence[Any]:
    """The values of a column of Arrow, as executors have them."""
    from trident.tuples.arrow_columns import python_values

    return python_values(column)
