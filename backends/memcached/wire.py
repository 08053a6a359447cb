"""Memcached's text protocol, many keys at a time: requests as bytes, and what replies say.

Text and not the newer meta commands: when memory runs out, a conditional ``ms`` removes the entry
that it should have replaced, and ``cas`` keeps it; and a ``gets`` of many keys is the fastest way
to read. Every request ends with a ``version`` command, whose answer ends the reply after any error.

pymemcache greets; the rest is by hand. It has no conditional write of many keys, its
``raw_command`` waits for one end and loses what comes after it, 81 of 100 answers when tried, and
its last release is of 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

END = b"version\r\n"
"""The last command of every request."""

Found = dict[bytes, tuple[bytes, bytes]]
"""From stored keys to values and versions; without those that are absent."""

_LINE = b"\r\n"
# More would have the server grow its buffer for each line.
_KEYS_A_LINE = 100
_STORED = {b"STORED": True, b"EXISTS": False, b"NOT_FOUND": False, b"NOT_STORED": False}


class IncompleteReplyError(Exception):
    """The reply is not complete yet, though it ends like a complete one."""


class UnexpectedReplyError(Exception):
    """The reply is no answer to the request."""

    def __init__(self, line: bytes) -> None:
        super().__init__(line)


def get_request(keys: Sequence[bytes]) -> bytes:
    r"""Return the request for values and versions."""
    starts = range(0, len(keys), _KEYS_A_LINE)
    lines = [b"gets %b\r\n" % b" ".join(keys[at : at + _KEYS_A_LINE]) for at in starts]
    return b"".join([*lines, END])


def read_entries(reply: bytes, end: bytes, asked: int) -> Found:
    """Return the entries in the reply to a request for `asked` keys; `end` answers ``version``."""
    lines = reply[: -len(end)].split(_LINE)
    rest = [line for line in lines if line != b"END"]
    ends = -(-asked // _KEYS_A_LINE)
    heads, values = rest[:-1:2], rest[1::2]
    fields = b" ".join(heads).split(b" ") if heads else []
    # The first line is a head. If a value is as long as its head says, it holds no line break, and
    # the line after it is the next head. So these conditions prove all lines.
    if (
        not lines[-1]
        and len(lines) - len(rest) == ends
        and len(fields) == 5 * len(values)
        and fields[3::5] == list(map(b"%d".__mod__, map(len, values)))
    ):
        return dict(zip(fields[1::5], zip(values, fields[4::5], strict=True), strict=True))
    return _read_by_length(reply, end)


def _read_by_length(reply: bytes, end: bytes) -> Found:
    result: Found = {}
    at = 0
    while True:
        stop = reply.find(_LINE, at)
        if stop < 0:
            raise IncompleteReplyError
        line = reply[at:stop]
        at = stop + len(_LINE)
        if line == b"END":
            continue
        if line + _LINE == end:
            return result
        fields = line.split(b" ")
        if len(fields) != 5 or fields[0] != b"VALUE" or not fields[3].isdigit():
            raise UnexpectedReplyError(line)
        stop = at + int(fields[3])
        if stop + len(_LINE) > len(reply):
            raise IncompleteReplyError
        result[fields[1]] = reply[at:stop], fields[4]
        at = stop + len(_LINE)


def set_request(keys: Sequence[bytes], values: Sequence[bytes], expires: int) -> bytes:
    r"""Return the request that stores values."""
    rows = zip(keys, repeat(expires), map(len, values), values, strict=False)
    return b"".join([*map(b"set %b 0 %d %d\r\n%b\r\n".__mod__, rows), END])


def cas_request(
    keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None], expires: int
) -> bytes:
    r"""Return the request that stores each value only over its version, None for absent."""
    rows = zip(keys, repeat(expires), map(len, values), versions, values, strict=False)
    if None not in versions:
        return b"".join([*map(b"cas %b 0 %d %d %b\r\n%b\r\n".__mod__, rows), END])
    commands = [
        b"add %b 0 %d %d\r\n%b\r\n" % (key, expires, length, value)
        if version is None
        else b"cas %b 0 %d %d %b\r\n%b\r\n" % (key, expires, length, version, value)
        for key, expires, length, version, value in rows
    ]
    return b"".join([*commands, END])


def read_stored(reply: bytes, end: bytes, count: int) -> list[bool]:
    r"""Return for each of `count` writes whether it was stored."""
    if reply == b"STORED\r\n" * count + end:
        return [True] * count
    answers = reply[: -len(end)].split(_LINE)[:-1]
    for line in answers:
        if line not in _STORED:
            raise UnexpectedReplyError(line)
    if len(answers) != count:
        raise UnexpectedReplyError(b"%d answers to %d writes" % (len(answers), count))
    return [_STORED[line] for line in answers]


def read_all_stored(reply: bytes, end: bytes, count: int) -> list[bool]:
    r"""Return the same for writes without a condition; raise if one was not stored."""
    answers = read_stored(reply, end, count)
    if not all(answers):
        raise UnexpectedReplyError(b"NOT_STORED")
    return answers


def read_stats(reply: bytes, end: bytes) -> dict[bytes, bytes]:
    r"""Return the names and numbers in the reply to a ``stats`` command."""
    result = {}
    for line in reply[: -len(end)].split(_LINE)[:-1]:
        word, _, rest = line.partition(b" ")
        if word == b"STAT":
            name, _, result[name] = rest.partition(b" ")
        elif line != b"END":
            raise UnexpectedReplyError(line)
    return result
