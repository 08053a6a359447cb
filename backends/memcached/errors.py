"""What can go wrong with a Memcached node, each with the next step."""

from __future__ import annotations

from trident.states.errors import SerializationError, StateUnavailableError

START = (
    "Start one: apt-get install memcached (on Debian it then runs), or "
    "docker run -d -p {port}:11211 memcached; or correct nodes=."
)
_UNKNOWN = "Which writes arrived is unknown; the batch is retried."
_ADVICE = {
    b"SERVER_ERROR out of memory": "Give it more memory: memcached -m <megabytes>.",
    b"SERVER_ERROR object too large": "Let it take larger items: memcached -I <size>.",
    b"ERROR Too many open": "Let it take more connections: memcached -c <number>.",
}
_NO_MEMCACHED = (
    "Is something else listening there, or has it as many connections as it takes (memcached -c)?"
)


def not_memcached(name: str, found: str) -> StateUnavailableError:
    """Return the error of a server that doesn't answer as Memcached does."""
    return StateUnavailableError(name, f"it does not answer as Memcached ({found})", _NO_MEMCACHED)


def no_answer(name: str, seconds: float) -> StateUnavailableError:
    advice = f"Is it paused or overloaded? {_UNKNOWN} Raise timeout= if it is only slow."
    return StateUnavailableError(name, f"no answer within {seconds:g} s", advice)


def connection_cut(name: str, reason: str) -> StateUnavailableError:
    """Return the error of a connection that ended before the answer did."""
    advice = f"Did it restart? {_UNKNOWN}"
    return StateUnavailableError(name, f"the connection was cut ({reason})", advice)


def refusal(name: str, line: bytes) -> StateUnavailableError:
    """Return the error of a server that answered with an error."""
    said = line[:100].decode(errors="replace")
    known = (advice for start, advice in _ADVICE.items() if line.startswith(start))
    advice = f"{next(known, _NO_MEMCACHED)} {_UNKNOWN}"
    return StateUnavailableError(name, f"it says {said!r}", advice)


def value_too_large(name: str, key: bytes, size: int, limit: int) -> SerializationError:
    """Return the error of a value that the node would refuse, removing the old value too."""
    allowed = (
        f"{name} takes at most {limit} bytes there; raise that with memcached -I <size> on every "
        "node, or keep less under one key."
    )
    return SerializationError("value", f"{size} bytes under the key {key[:60]!r}", allowed)
