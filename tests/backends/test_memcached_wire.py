"""Memcached's replies, whatever the values in them look like, and wherever they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident.backends.memcached.connections import NodeAddress
from trident.backends.memcached.wire import (
    IncompleteReplyError,
    UnexpectedReplyError,
    cas_request,
    get_request,
    read_all_stored,
    read_entries,
    read_stats,
    read_stored,
    set_request,
)

END = b"VERSION 1.6.18\r\n"
NASTY = st.lists(
    st.sampled_from(
        [b"\r\n", b"END", b"END\r\n", END, b"VALUE k0 0 1 2\r\n", b"x", b"", b"VALUE k1 0 0 7"]
    ),
    max_size=6,
).map(b"".join)
ENTRIES = st.dictionaries(st.integers(0, 250), NASTY, max_size=20)


def reply_of(entries: dict[int, bytes], asked: int) -> bytes:
    """What a server says that was asked for k0, k1 and so on."""
    said = b""
    for number in range(asked):
        if number in entries:
            value = entries[number]
            said += b"VALUE k%d 0 %d %d\r\n%b\r\n" % (number, len(value), number + 1000, value)
        if number % 100 == 99 or number == asked - 1:
            said += b"END\r\n"
    return said + END


def answer_of(entries: dict[int, bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    return {b"k%d" % n: (value, b"%d" % (n + 1000)) for n, value in entries.items()}


@given(ENTRIES)
def test_every_value_comes_back(entries: dict[int, bytes]) -> None:
    assert read_entries(reply_of(entries, 251), END, 251) == answer_of(entries)


@given(ENTRIES)
def test_a_reply_that_is_cut_where_a_value_looks_like_its_end_is_incomplete(
    entries: dict[int, bytes],
) -> None:
    reply = reply_of(entries, 251)
    stop = reply.find(END)
    while (stop := stop + len(END)) < len(reply):
        with pytest.raises(IncompleteReplyError):
            read_entries(reply[:stop], END, 251)
        stop = reply.find(END, stop)


def test_keys_are_asked_for_a_hundred_a_line() -> None:
    request = get_request([b"k%d" % number for number in range(201)])
    lines = request.split(b"\r\n")
    assert [line.count(b" ") for line in lines] == [100, 100, 1, 0, 0]
    assert lines[-2:] == [b"version", b""]


@pytest.mark.parametrize(
    "said",
    [b"SERVER_ERROR out of memory writing get response", b"ERROR", b"CLIENT_ERROR a b c d", b"HI"],
)
def test_an_error_among_the_values_is_raised(said: bytes) -> None:
    reply = b"VALUE a 0 1 7\r\n1\r\n" + said + b"\r\n" + END
    with pytest.raises(UnexpectedReplyError) as raised:
        read_entries(reply, END, 200)
    assert raised.value.args == (said,)


def test_each_write_is_answered() -> None:
    said = b"STORED\r\nEXISTS\r\nNOT_FOUND\r\nNOT_STORED\r\n" + END
    assert read_stored(said, END, 4) == [True, False, False, False]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"STORED\r\nSERVER_ERROR out of memory storing object\r\n", b"SERVER_ERROR out of"),
        (b"STORED\r\nCLIENT_ERROR bad data chunk\r\nERROR\r\n", b"CLIENT_ERROR bad"),
        (b"STORED\r\n", b"1 answers to 2 writes"),
        (b"STORED\r\nSTORED\r\nSTORED\r\n", b"3 answers to 2 writes"),
    ],
)
def test_a_write_that_was_not_answered_is_an_error(said: bytes, problem: bytes) -> None:
    with pytest.raises(UnexpectedReplyError) as raised:
        read_stored(said + END, END, 2)
    assert raised.value.args[0].startswith(problem)


def test_a_write_without_a_condition_has_to_be_stored() -> None:
    assert read_all_stored(b"STORED\r\n" + END, END, 1) == [True]
    with pytest.raises(UnexpectedReplyError):
        read_all_stored(b"NOT_STORED\r\n" + END, END, 1)


def test_a_missing_version_makes_an_entry_and_a_version_replaces_one() -> None:
    request = cas_request([b"a", b"b"], [b"1", b"22"], [b"7", b"8"], 60)
    assert request == b"cas a 0 60 1 7\r\n1\r\ncas b 0 60 2 8\r\n22\r\nversion\r\n"
    request = cas_request([b"a", b"b"], [b"1", b"22"], [None, b"8"], 60)
    assert request == b"add a 0 60 1\r\n1\r\ncas b 0 60 2 8\r\n22\r\nversion\r\n"


def test_what_is_no_statistic_is_an_error() -> None:
    with pytest.raises(UnexpectedReplyError):
        read_stats(b"ERROR\r\n" + END, END)


def test_requests_are_what_memcached_reads() -> None:
    assert get_request([b"cat", b"dog"]) == b"gets cat dog\r\nversion\r\n"
    assert set_request([b"dog"], [b"2"], 0) == b"set dog 0 0 1\r\n2\r\nversion\r\n"
    written = b"add cat 0 0 1\r\n3\r\ncas dog 0 0 1 57\r\n2\r\nversion\r\n"
    assert cas_request([b"cat", b"dog"], [b"3", b"2"], [None, b"57"], 0) == written


def test_replies_are_read_up_to_the_version() -> None:
    end = b"VERSION 1\r\n"
    reply = b"VALUE dog 0 1 57\r\n2\r\nEND\r\n" + end
    assert read_entries(reply, end, 2) == {b"dog": (b"2", b"57")}
    assert read_stored(b"STORED\r\nEXISTS\r\n" + end, end, 2) == [True, False]
    assert read_stats(b"STAT pid 7\r\nEND\r\n" + end, end) == {b"pid": b"7"}


def test_a_node_is_written_with_its_port_or_without() -> None:
    assert NodeAddress.parse("localhost") == NodeAddress("localhost", 11211)
    assert NodeAddress.parse(("cache", 11213)) == NodeAddress("cache", 11213)
    assert NodeAddress.parse("[::1]:11212") == NodeAddress("::1", 11212)
    assert str(NodeAddress("::1", 11212)) == "[::1]:11212"
