"""Proves that text in a message of Spark's comes from a task of the same attempt."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

_MARK = "trident-sealed:"
# A match takes the mark only, so that another mark in the text behind it is found too.
_SEALED = re.compile(_MARK + r"(?=([A-Za-z0-9+/=]+)\.([0-9a-f]{64}))")


@dataclass(frozen=True)
class Seal:
    """Signs what tasks report to the driver, so that no value of the stream can be taken for it.

    The key is made for one attempt, or for the stages of a process's own DataFrames, and travels
    in the pickled stages only: no message, log or ``repr`` shows it. What an earlier attempt has
    sealed proves nothing.

    Examples
    --------
    >>> seal = Seal()
    >>> line = seal.sign({"keys": 3})
    >>> seal.read(f"[PYTHON_EXCEPTION] {line} SQLSTATE: 38000")
    {'keys': 3}
    >>> Seal().read(line) is None
    True
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def sign(self, document: Any) -> str:
        """Return values of JSON as one word, which `read` finds wherever Spark puts it."""
        data = base64.b64encode(json.dumps(document).encode()).decode()
        return f"{_MARK}{data}.{self._proof(data)}"

    def read(self, text: str) -> Any:
        """Return the first document in a text that this key has signed; None if there is none."""
        for found in _SEALED.finditer(text):
            data, proof = found.groups()
            if hmac.compare_digest(proof, self._proof(data)):
                return json.loads(base64.b64decode(data))
        return None

    def _proof(self, data: str) -> str:
        return hmac.new(self.key, data.encode(), hashlib.sha256).hexdigest()
