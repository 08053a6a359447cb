"""Shortens tracebacks to the caller's lines: without the frames of this library."""

from __future__ import annotations

import logging
import os
from types import TracebackType

from trident.states.errors import TridentError

_logger = logging.getLogger("trident")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# ``states`` and ``backends`` are links in a checkout, so their code may show either path.
LIBRARY = tuple(
    path + os.sep
    for name in ("", "states", "backends")
    for folder in [os.path.join(_PACKAGE, name).rstrip(os.sep)]
    for path in {folder, os.path.realpath(folder)}
)
"""The folders of this library's files."""


class Briefly:
    """A context that removes the frames of this library from errors.

    It is around the body of public calls. The log `trident` has the frames at ``DEBUG``.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, TridentError):
            _logger.debug("raised by a call", exc_info=error)
            without_frames(error)
        elif isinstance(error, Exception):
            error.__traceback__ = _outside(trace)


def without_frames(error: TridentError) -> TridentError:
    """Return the same error without its frames, as its text says all that a user needs.

    Its causes lose their frames too: those of a store's driver alone fill fifty lines. Their texts
    stay, except those that an error of ours includes already.
    """
    error.__traceback__ = None
    followed = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while followed is not None and followed.__traceback__ is not None:
        followed.__traceback__ = None
        if isinstance(followed, TridentError):
            followed.__cause__ = None
            followed.__suppress_context__ = True
        followed = followed.__cause__ or followed.__context__
    return error


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the library's frames."""
    frames = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(LIBRARY):
            frames.append(traceback)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return traceback
