"""Proves that what the driver reads in a message of Spark's comes from a task of the attempt."""

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
# The mark alone is taken, so that one inside of what another seems to hold is found too.
_SEALED = re.compile(_MARK + r"(?=([A-Za-z0-9+/=]+)\.([0-9a-f]{64}))")


@dataclass(frozen=True)
class Seal:
    """Seals what tasks tell the driver: a value that Spark quotes can't pass for one of them.

    Its key is made for one attempt and travels in the stages' pickled closures only; neither a
    message nor a log nor ``repr`` shows it. So what an earlier attempt has said proves nothing.

    Examples
    --------
    >>> seal = Seal()
    >>> line = seal.sealed({"keys": 3})
    >>> seal.opened(f"[PYTHON_EXCEPTION] {line} SQLSTATE: 38000")
    {'keys': 3}
    >>> Seal().opened(line) is None
    True
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def sealed(self, document: Any) -> str:
        """Values of JSON as one word, which `opened` finds wherever Spark puts it."""
        data = base64.b64encode(json.dumps(document).encode()).decode()
        return f"{_MARK}{data}.{self._proof(data)}"

    def opened(self, text: str) -> Any:
        """The first document in a text that this key has sealed; None where there is none."""
        for found in _SEALED.finditer(text):
            data, proof = found.groups()
            if hmac.compare_digest(proof, self._proof(data)):
                return json.loads(base64.b64decode(data))
        return None

    def _proof(self, data: str) -> str:
        return hmac.new(self.key, data.encode(), hashlib.sha256).hexdigest()
