"""What drivers are handed as text or bytes."""

from __future__ import annotations

from trident.backends.objectstore.checkpoint import explain
from trident.backends.postgres.driver import BYTES, array
from trident.backends.postgres.tables import column_of
from trident.backends.zookeeper.session import join_addresses


def test_an_array_of_postgresql_has_its_elements_behind_its_head() -> None:
    assert array(BYTES, [b"a", None])[20:] == b"\0\0\0\1a\xff\xff\xff\xff"


def test_a_column_has_the_first_word_of_its_type() -> None:
    found = [column_of(given) for given in ("day:date", "price:decimal(9,2)", "word")]
    assert found == [("day", "date"), ("price", "decimal"), ("word", "")]


def test_an_address_of_ipv6_is_in_brackets() -> None:
    assert join_addresses([("one", 2181), ("::1", 2182)]) == "one:2181,[::1]:2182"


def test_what_an_object_store_says_comes_with_its_meaning() -> None:
    said = "status code: 403 Forbidden: <Error><Code>AccessDenied</Code>"
    told = str(explain(said, "s3://bucket/words"))
    assert "s3://bucket/words: it refuses the login (403 Forbidden, AccessDenied)." in told
