"""What must not be shown: passwords, tokens and the like, in URLs, addresses and other texts."""

from __future__ import annotations

import re

HIDDEN = "***"

_NAME = "passw|passphrase|pwd|secret|token|auth|credential|(?:api|access|account|private)[-_]?key"
_VALUE = r"""(?:'(?:\\.|[^'\\])*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)|\S)+"""
_SECRET = re.compile(_NAME, re.IGNORECASE)
_GIVEN = re.compile(rf"((?:{_NAME})[\w.-]{{0,40}}\s{{0,9}}=\s{{0,9}}){_VALUE}", re.IGNORECASE)


def is_secret(option: str) -> bool:
    """Whether the value of an option must not be shown, judged by its name.

    Examples
    --------
    >>> is_secret("password"), is_secret("sentinel_password"), is_secret("prefix")
    (True, True, False)
    """
    return _SECRET.search(option) is not None


def masked(text: str) -> str:
    """Return `text` without the logins of URLs and the values of secrets in it.

    What follows a secret's name is hidden up to the next space, as it may hold any other mark.

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
