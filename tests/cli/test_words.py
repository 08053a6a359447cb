"""Words of a command line: states, keys and values."""

from __future__ import annotations

from trident.cli.named import is_url
from trident.cli.shown import json_text, key_of, key_text


def test_a_url_is_told_from_the_name_of_a_topology() -> None:
    words = ("sqlite:counts.db", "ridis://cache", "words:topology/count")
    assert list(map(is_url, words)) == [True, True, False]


def test_a_word_is_a_key_of_one_text_or_an_array_of_its_fields() -> None:
    assert [key_of("dog"), key_of('["dog",2]'), key_of('["[dog]"]')] == [
        ("dog",),
        ("dog", 2),
        ("[dog]",),
    ]


def test_a_key_is_shown_as_the_word_that_finds_it() -> None:
    shown = [key_text(key) for key in (("dog",), ("dog", 2), ("two\nlines",))]
    assert shown == ["dog", '["dog",2]', '["two\\nlines"]']


def test_a_value_is_shown_as_json_on_one_line() -> None:
    shown = [json_text(value) for value in ({"seen": 2}, None, {1, 2})]
    assert shown == ['{"seen":2}', "null", '"{1, 2}"']
