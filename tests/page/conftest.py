"""One browser for the tests of the page: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser, Tab


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def tab(browser: Browser) -> Tab:
    return browser.tab()
