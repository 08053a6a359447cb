"""Makes texts from streams, stores and clients safe for terminals, logs and pages.

A control character in them could move the cursor, hide earlier text, or forge a line of the log.
"""

from __future__ import annotations

import logging
import re

_LONGEST = 2_000
"""Characters of one argument of a message in the log."""
_LONGEST_TRACE = 20_000
_ODD = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufeff\ufffe\uffff]"
)

HIDDEN = "***"
_NAME = "passw|passphrase|pwd|secret|token|auth|credential|(?:api|access|account|private)[-_]?key"
_VALUE = r"""(?:'(?:\\.|[^'\\])*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)|\S)+"""
_SECRET = re.compile(_NAME, re.IGNORECASE)
_GIVEN = re.compile(rf"((?:{_NAME})[\w.-]{{0,40}}\s{{0,9}}=\s{{0,9}}){_VALUE}", re.IGNORECASE)


class Lines(str):
    """Lines that the log keeps as lines; it indents all but the first."""

    __slots__ = ()


def printable(text: str) -> str:
    r"""Return `text` with control characters as their numbers, except ends of lines and tabs.

    Those that turn the direction of what follows are among them, and halves of surrogate pairs.

    Examples
    --------
    >>> printable("one\x1b[2J\ntwo")
    'one\\u001b[2J\ntwo'
    """
    return _ODD.sub(_number, text)


def one_line(text: str) -> str:
    r"""Return `text` with all control characters as their numbers.

    Examples
    --------
    >>> one_line("one\x1b[2J\ntwo")
    'one\\u001b[2J\\ntwo'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int) -> str:
    """Return a text; only its begin and its end if it is longer than `most` characters.

    Examples
    --------
    >>> shortened("abcdefghij", 4)
    'ab… 6 characters …ij'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}… {len(text) - 2 * half:,} characters …{text[-half:]}"


class _PrintableRecords(logging.Filter):
    """Makes the arguments of messages printable: each in one line, and not too long."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple) and record.args:
            record.args = tuple(map(_shown, record.args))
        elif not record.args:
            record.msg = _shown(record.msg)
        if record.exc_info and not record.exc_text:
            trace = logging.Formatter().formatException(record.exc_info)
            record.exc_text = "  " + _indented(shortened(trace, _LONGEST_TRACE))
        return True


PRINTABLE_RECORDS = _PrintableRecords()
"""A filter for a logger."""


def _shown(argument: object) -> object:
    if isinstance(argument, int | float | None):
        return argument
    text = shortened(str(argument), _LONGEST)
    return _indented(text) if isinstance(argument, Lines) else one_line(text)


def _indented(text: str) -> str:
    return printable(text).replace("\n", "\n  ")


def _number(found: re.Match[str]) -> str:
    return "\\r" if found[0] == "\r" else f"\\u{ord(found[0]):04x}"


def is_secret(option: str) -> bool:
    """Return whether an option, by its name, has a value that must not be shown.

    Examples
    --------
    >>> is_secret("password"), is_secret("sentinel_password"), is_secret("prefix")
    (True, True, False)
    """
    return _SECRET.search(option) is not None


def masked(text: str) -> str:
    """Return `text` without the logins of URLs and the values of secrets in it.

    All after a secret's name is hidden, up to the next space: a secret may hold any other mark.

    Examples
    --------
    >>> masked("'redis://me:secret@host/0' and host=one password='s3 cret'")
    "'redis://***@host/0' and host=one password=***"
    """
    return _GIVEN.sub(rf"\1{HIDDEN}", re.sub(r"\S+", _without_login, text))


def _without_login(found: re.Match[str]) -> str:
    word = found[0]
    begin, end = word.find("://"), word.rfind("@")  # a pattern would take the square of its length
    return f"{word[: begin + 3]}{HIDDEN}{word[end:]}" if 0 <= begin < end else word
