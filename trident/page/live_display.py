"""What a notebook shows, kept up to date while a cell shows it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

_logger = logging.getLogger("trident")
_EVERY = 1.0


class LiveDisplay:
    """Shows HTML in a notebook, and the same place again when it is other HTML.

    A thread does so, so that the notebook goes on; it ends with what is shown, and where the same
    is shown once more in another cell: then only the later one is kept up to date.

    `ended` waits some seconds for the end of what is shown, and says whether it has ended.
    """

    def __init__(self, html: Callable[[], str], ended: Callable[[float], bool]) -> None:
        self._html = html
        self._has_ended = ended
        self._replaced = Event()

    def show(self) -> None:
        """Show it in the cell that is run.

        In a terminal it raises NotImplementedError: IPython then shows the object as any other.
        """
        from IPython import get_ipython
        from IPython.display import HTML, display

        if not hasattr(get_ipython(), "kernel"):
            raise NotImplementedError
        self._replaced.set()
        replaced = self._replaced = Event()
        shown = self._html()
        place = display(HTML(shown), display_id=True)

        def go_on() -> None:
            before, last = shown, False
            try:
                while not last and not replaced.is_set():
                    last = self._has_ended(_EVERY)
                    now = self._html()
                    if now != before and not replaced.is_set():
                        place.update(HTML(now))
                        before = now
            except Exception:  # the notebook is gone, or doesn't take it: what it shows stays
                _logger.debug("a notebook is no longer kept up to date", exc_info=True)

        Thread(target=go_on, name="trident-notebook", daemon=True).start()
