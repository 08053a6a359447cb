"""What is hidden of passwords, tokens and the like, wherever a text may hold one."""

from __future__ import annotations

import time

import pytest

from trident.states.printable import is_secret, masked


@pytest.mark.parametrize(
    "text",
    [
        "redis://:s3cret@host",
        "redis://me:s3c@ret@host/0",
        "kafka://host:1?sasl.password=s3cret",
        "host=one password='s3 cret' dbname=words",
        "redis://h?password=x&s3cret=y",
        "Endpoint=one;SharedAccessKey=s3cret",
        "trustpassphrase = s3cret",
    ],
)
def test_no_secret_is_left_in_a_text(text: str) -> None:
    shown = masked(text)
    assert "***" in shown
    assert not any(part in shown for part in ("s3", "cret", "ret@")), shown


@pytest.mark.parametrize("text", ["sqlite:counts.db", "key=5 and count=3", "me@host", "Token(7)"])
def test_what_is_no_secret_is_left_as_it_is(text: str) -> None:
    assert masked(text) == text


def test_what_places_options_and_texts_hide_is_one_rule() -> None:
    for name in ("password", "sasl.passphrase", "api_key", "auth_token", "client_secret"):
        assert is_secret(name)
        assert masked(f"{name}=abc") == f"{name}=***"


@pytest.mark.parametrize("part", ["://", "passw", "token ", "a@"])
def test_a_long_text_is_masked_in_a_time_that_follows_its_length(part: str) -> None:
    began = time.process_time()
    masked(part * 200_000)
    assert time.process_time() - began < 5
