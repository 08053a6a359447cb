"""The error of a call that is wrong in itself: what, what was found, what is allowed, what next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from trident.states.errors import TridentError


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

    def __init__(
        self, what: str, found: str = "", allowed: Sequence[str] = (), advice: str = ""
    ) -> None:
        super().__init__(what, masked(found), tuple(allowed), advice)

    @property
    def nearest(self) -> str | None:
        """The allowed name that is most like the one found."""
        _, found, allowed, _ = self.args
        return next(iter(difflib.get_close_matches(found, allowed, n=1)), None)

    def __str__(self) -> str:
        what, found, allowed, advice = self.args
        text = f"{what} {found!r}" if found else what
        if allowed:
            text += f"; there are: {', '.join(allowed)}"
        text += "."
        if self.nearest:
            text += f" Did you mean {self.nearest!r}?"
        return f"{text} {advice}" if advice else text


def masked(text: str) -> str:
    """Return `text` without the logins of URLs in it, for what was given in the wrong place.

    Examples
    --------
    >>> masked("'redis://me:secret@host/0'")
    "'redis://***@host/0'"
    """
    return re.sub(r"://\S*@", "://***@", text)
