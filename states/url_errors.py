"""The error of a state's URL, which shows nothing that the URL keeps secret."""

from __future__ import annotations

from trident.states.usage_errors import UsageError


class StateURLError(UsageError):
    """The URL of a state can't be used; nothing was connected to.

    Whoever raises it passes nothing that could be part of a password: of a URL only ``str(url)``,
    its scheme, or the name of an option.

    The parameters are those of :class:`~trident.states.usage_errors.UsageError`.
    """
