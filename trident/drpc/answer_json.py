"""An answer as text: JSON, as Storm's."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import orjson

from trident.operations.emitted import Row


def answer_json(rows: Sequence[Row]) -> str:
    """The tuples of an answer as JSON, a list for each.

    Examples
    --------
    >>> answer_json([("a", 1), (None, b"b")])
    '[["a",1],[null,"Yg=="]]'
    """
    try:
        return orjson.dumps(rows, default=_text, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Integers of more than 64 bits, and text with lone surrogates.
        return json.dumps(rows, default=_text, separators=(",", ":"))


def _text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
