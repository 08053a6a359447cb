"""What tells a request from others, so that its client may repeat it."""

from __future__ import annotations

from trident.drpc.errors import MalformedRequestError

_LONGEST = 200


def check_request_id(request_id: object) -> None:
    """Refuse what can't tell a request from others.

    It must not be empty or too long, nor hold what no header could carry.
    """
    if request_id is None:
        return
    text = isinstance(request_id, str) and request_id.isascii() and request_id.isprintable()
    if not text or not 0 < len(str(request_id)) <= _LONGEST:
        problem = f"the request id is no text of 1 to {_LONGEST} printable ASCII characters"
        raise MalformedRequestError(problem)
