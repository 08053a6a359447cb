"""How keys are written: no two of them alike, whatever they hold."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state_service.asking import asked, entries, serving, static, told
from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology
from trident.drpc.errors import MalformedRequestError
from trident.state_service.requests import key_of_text, named_states, text_of_key
from trident.states.keys import encode_key

FIELDS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(),
        st.sampled_from(["[", "[]", '["cat"]', "\0", "\0[5]", "$GLOBAL$", "a/b", "a%2Fb", ""]),
        st.binary(),
        st.dates(),
        st.datetimes(timezones=st.just(UTC)),
        st.datetimes(),
        st.decimals(allow_nan=False, allow_infinity=False, places=2, max_value=10**9),
        st.uuids(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(FIELDS, min_size=1, max_size=3).map(tuple))
def test_a_key_is_the_same_after_it_was_written(key: tuple[Any, ...]) -> None:
    assert encode_key(key_of_text(text_of_key(key))) == encode_key(key)


@given(st.text())
def test_any_text_is_a_key_or_refused(text: str) -> None:
    try:
        key = key_of_text(text)
    except MalformedRequestError:
        assert text.startswith("[")
    else:
        assert text.startswith("[") or key == (text,)


KEYS: list[tuple[Any, int]] = [
    ("cat", 1),
    ("", 2),
    ("[cat]", 3),
    ("a/b", 4),
    ((5,), 6),
    (("5",), 7),
    ((5.0,), 8),
    ((None,), 9),
    ((True,), 10),
    ((date(2026, 1, 2), Decimal("1.50")), 11),
    ((b"cat",), 12),
    ((UUID(int=5), datetime(2026, 1, 2, 3, tzinfo=UTC)), 13),
    ((["a", "b"], {"a": 1}), 14),
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cat", 1),
        ('["cat"]', 1),
        ("", 2),
        ('["[cat]"]', 3),
        ("a/b", 4),
        ("a%2Fb", 4),
        ("[5]", 6),
        ("5", 7),
        ("[5.0]", 8),
        ("[null]", 9),
        ("[true]", 10),
        ('[{"$date":"2026-01-02"},{"$decimal":"1.5"}]', 11),
        ('[{"$binary":"Y2F0"}]', 12),
        (
            '[{"$uuid":"00000000-0000-0000-0000-000000000005"},'
            '{"$timestamp":"2026-01-02T03:00:00.000000Z"}]',
            13,
        ),
        (
            '["00000000-0000-0000-0000-000000000005",{"$timestamp":"2026-01-02T03:00:00.000000Z"}]',
            13,
        ),
        ('[["a","b"],{"a":1}]', 14),
    ],
)
def test_each_type_of_key_has_its_form_in_urls_and_bodies(text: str, value: int) -> None:
    with closing(serving(static(keyed=entries(KEYS)))) as served:
        path = quote(text, safe="/%")
        assert told(asked(served, "GET", f"/api/v1/state/keyed/{path}"))[1]["value"] == value


def test_a_key_is_converted_to_the_declared_types_and_refused_where_it_cant_be() -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("price double, day date, n decimal(9,2)", 1)
    topology.newStream("prices", spout).groupBy("price, day, n").persistentAggregate(
        MemoryMapState.Factory(), Count(), "times", name="prices"
    )
    with topology.start() as run, closing(serving(run)) as served:
        run.processAllAvailable()
        for key, status in (
            ('[5,{"$date":"2026-01-02"},3]', 404),
            ('[5.5,{"$date":"2026-01-02"},{"$decimal":"3.10"}]', 404),
            ('["5",{"$date":"2026-01-02"},3]', 400),
            ('[5,"2026-01-02",3]', 400),
            ('[5,{"$date":"2026-01-02"},3.5]', 400),
            ('[5,{"$date":"2026-01-02"}]', 400),
        ):
            response = asked(served, "GET", f"/api/v1/state/prices/{quote(key)}")
            assert response.status == status, response
        assert told(response)[1]["errorMessage"].startswith(
            "the request can't be read: the keys of 'prices' have the fields: price double, day "
            "date, n decimal(9,2); found 2 of them"
        )


def test_a_body_names_states_with_their_keys() -> None:
    named = named_states('{"states": {"count": ["cat"], "total": null}}')
    assert named == {"count": ["cat"], "total": None}
