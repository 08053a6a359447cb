"""What can be wrong with the URL of a state, said without what it keeps secret."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from trident.states.errors import TridentError


class StateURLError(TridentError, ValueError):
    """The URL of a state can't be used; nothing was connected to.

    Whoever raises it passes nothing that could be part of a password: of a URL only
    ``str(url)``, or its scheme, or the name of an option.

    Parameters
    ----------
    what : str
        What is wrong.
    found : str
        What was given, where it is no secret.
    allowed : sequence of str
        What would be right; the one nearest to `found` is offered.
    advice : str
        The next step.

    Examples
    --------
    >>> str(StateURLError("sqlite: unknown option", "cash", ["cache", "mode"]))
    "sqlite: unknown option 'cash'; there are: cache, mode. Did you mean 'cache'?"
    """

    def __init__(
        self, what: str, found: str = "", allowed: Sequence[str] = (), advice: str = ""
    ) -> None:
        super().__init__(what, found, tuple(allowed), advice)

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
