"""A real browser without a screen: Debian's Chromium, told by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from trident.testing.servers.process import not_installed, refuse_where_quick

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 60_000.0
"""Milliseconds for whatever a browser is asked: it starts slowly where others work."""
UP_TO_DATE = "document.getElementById('live').textContent === 'up to date'"
"""Whether the page shows what the server told last."""
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@contextmanager
def started() -> Iterator[Browser]:
    """Start a browser, and end it; it ends with this process too.

    Raises
    ------
    MissingServer
        Where none is installed.
    """
    refuse_where_quick()
    from playwright.sync_api import sync_playwright  # half a second for each who collects tests

    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        raise not_installed(_PROGRAMS[0], _PROGRAMS[0])
    with (
        sync_playwright() as driver,
        driver.chromium.launch(
            executable_path=found,
            args=[*_OPTIONS, "--hide-scrollbars", "--font-render-hinting=none"],
            timeout=PATIENCE,
        ) as browser,
    ):
        yield browser


def wait_for(tab: Page, script: str) -> None:
    """Return when an expression is true in the page.

    Playwright's own way evaluates it in the page again and again, which our policy refuses.
    """
    until = monotonic() + PATIENCE / 1000
    while not tab.evaluate(script):
        assert monotonic() < until, f"it never became so: {script}"
        tab.wait_for_timeout(20)
