"""The line of the user's program that declared a step."""

from __future__ import annotations

import sys
from dataclasses import dataclass

_API = (
    *("trident.api.topology", "trident.api.stream", "trident.api.write_stream"),
    *("trident.api.start", "trident.plan."),
)


@dataclass(frozen=True)
class CallSite:
    """Where a step was declared."""

    file: str
    line: int
    call: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> CallSite:
    """The nearest line on the stack that is not the fluent API's own."""
    frame = sys._getframe(1)
    call = ""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_API):
        call = frame.f_code.co_name
        frame = frame.f_back
    return CallSite(frame.f_code.co_filename, frame.f_lineno, call.rstrip("_"))
