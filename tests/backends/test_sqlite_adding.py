"""The one statement for counts and sums gives what reading, adding in Python and writing give."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from trident.backends.sqlite import SQLiteStore
from trident.backends.sqlite.backing_map import SQLiteMap
from trident.operations.builtin import Sum
from trident.states import OpaqueValue, Token
from trident.states.control import Control, ControlRecord
from trident.states.keys import encode_keys
from trident.states.maps.factory import OpaqueMap

KEYS = ["a", "b", "\0", "ключ", ""]
amounts = st.one_of(
    st.integers(-(2**40), 2**40),
    st.sampled_from([2**53 + 1, -(2**53) - 1, 2**61, -(2**61)]),
    st.floats(-1e300, 1e300, allow_nan=False),
)
batches = st.lists(
    st.tuples(
        st.booleans(),  # whether it is committed, or fails and is tried again with other content
        st.dictionaries(st.sampled_from(KEYS), amounts),
    ),
    max_size=6,
)

Plan = list[tuple[bool, dict[str, float]]]


class WithoutAdding(OpaqueMap):
    """Folds as a store would have to that can't add."""

    def multiFold(self, keys, partials, combiner):  # type: ignore[no-untyped-def]
        self.multiCombine(keys, partials, combiner)


def played(state: OpaqueMap, store: SQLiteMap, plan: Plan) -> list[tuple[bytes, OpaqueValue]] | str:
    control = Control(store)
    committed, attempt = 0, 0
    retried: dict[int, int] = {}
    for succeeds, fold in plan:
        record = ControlRecord("a1", Token(committed + 1, attempt), committed, dict(retried))
        control.begin(record)
        state.beginCommit(record)
        try:
            state.multiFold(encode_keys([(key,) for key in fold]), list(fold.values()), Sum())
            state.commit(record)
        except ArithmeticError:
            return "more than 64 bits"
        if succeeds:
            committed += 1
            if attempt:
                retried[committed] = attempt
            control.announce(record)
        attempt = 0 if succeeds else attempt + 1
    return sorted(store.entries())


@settings(max_examples=60, deadline=None)
@example([(True, {"a": 2**62, "b": 1}), (True, {"b": 1, "a": 2**62})])
@given(batches)
def test_adding_in_sql_equals_adding_in_python(
    plan: Plan,
) -> None:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "counts.db")
        with_sql, with_python = (SQLiteStore(path, name).open() for name in ("sql", "python"))
        found = played(OpaqueMap(with_sql), with_sql, plan)
        expected = played(WithoutAdding(with_python), with_python, plan)
        # By text, which also tells an int from a float that equals it.
        assert repr(found) == repr(expected)
        with_sql.close()
        with_python.close()
