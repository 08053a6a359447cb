"""The error of a call that is wrong in itself: what, what was found, what is allowed, what next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trident.states.errors import TridentError


@dataclass(eq=False, repr=False)
class UsageError(TridentError, ValueError):
    """A call is wrong, and had no effect.

    Parameters
    ----------
    what : str
        The call and what is wrong with it.
    found : str
        What was given.
    allowed : sequence of str
        What would be right; the name nearest to ``found`` is offered.
    advice : str
        The next step.

    Examples
    --------
    >>> str(UsageError("sqlite: unknown option", "cash", ["cache", "mode"]))
    "sqlite: unknown option 'cash'; there are: cache, mode. Did you mean 'cache'?"
    """

    what: str
    found: str = ""
    allowed: Sequence[str] = ()
    advice: str = ""

    def __post_init__(self) -> None:
        self.found, self.allowed = masked(self.found), tuple(self.allowed)
        super().__post_init__()

    @property
    def nearest(self) -> str | None:
        """The allowed name that is most like the one found."""
        return next(iter(difflib.get_close_matches(self.found, self.allowed, n=1)), None)

    def __str__(self) -> str:
        text = f"{self.what} {self.found!r}" if self.found else self.what
        if self.allowed:
            text += f"; there are: {', '.join(self.allowed)}"
        text += "."
        if self.nearest:
            text += f" Did you mean {self.nearest!r}?"
        return f"{text} {self.advice}" if self.advice else text


def masked(text: str) -> str:
    """Return `text` without the logins of URLs in it, for what was given in the wrong place.

    Examples
    --------
    >>> masked("'redis://me:secret@host/0'")
    "'redis://***@host/0'"
    """
    return re.sub(r"://\S*@", "://***@", text)
