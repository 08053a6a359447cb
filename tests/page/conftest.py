"""One browser for the tests of a file: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.page.browser import PATIENCE, started

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


# Not for the session: while its driver runs, this thread has an event loop that is running.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab of its own; ``@pytest.mark.parametrize("tab", [{…}], indirect=True)`` has options."""
    with browser.new_context(**getattr(request, "param", {})) as context:
        context.set_default_timeout(PATIENCE)
        yield context.new_page()
