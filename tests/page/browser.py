"""A real browser without a screen: Chromium, told by its DevTools protocol over two pipes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from base64 import b64decode
from collections import deque
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Self

from trident.testing.servers.process import not_installed, refuse_where_quick

PATIENCE = 60.0
"""Seconds for whatever a browser is asked: it starts slowly where others work."""
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--font-render-hinting=none"),
)


class Browser:
    """A browser, which ends with the process that started it.

    Parameters
    ----------
    folder : Path
        What it keeps is in there.

    Raises
    ------
    MissingServer
        Where none is installed.
    """

    def __init__(self, folder: Path) -> None:
        refuse_where_quick()
        found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
        if found is None:
            raise not_installed(_PROGRAMS[0], _PROGRAMS[0])
        folder.mkdir(parents=True, exist_ok=True)
        its_in, self._out = os.pipe()
        self._in, its_out = os.pipe()
        self._read = b""
        self._messages: deque[Any] = deque()
        self._last = 0
        # It reads what it is told from 3, and tells what happens by 4.
        shell = f'exec "$0" "$@" 3<&{its_in} 4>&{its_out}'
        options = (*_OPTIONS, f"--user-data-dir={folder}", "about:blank")
        with (folder / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", shell, found, *options],
                pass_fds=(its_in, its_out),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": str(folder)},
            )
        os.close(its_in)
        os.close(its_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, and wait until all of its processes have ended."""
        with suppress(Exception):
            self.ask("Browser.close")
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def tab(self) -> Tab:
        """Return a new tab, with nothing that another one keeps."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        where = {"url": "about:blank", "browserContextId": context}
        target = self.ask("Target.createTarget", **where)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, session)

    def ask(self, method: str, session: str | None = None, **given: Any) -> Any:
        """Return what it answers to one call of its protocol."""
        self._last += 1
        told: dict[str, Any] = {"id": self._last, "method": method, "params": given}
        if session is not None:
            told["sessionId"] = session
        os.write(self._out, json.dumps(told).encode() + b"\0")
        until = monotonic() + PATIENCE
        while True:
            message = self._message(until)
            if message.get("id") == self._last:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._messages.append(message)

    def event(self, session: str, method: str) -> Any:
        """Return the parameters of the next event of this name; earlier ones are forgotten."""
        until = monotonic() + PATIENCE
        while True:
            message = self._messages.popleft() if self._messages else self._message(until)
            if message.get("sessionId") == session and message.get("method") == method:
                return message["params"]

    def _message(self, until: float) -> Any:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - monotonic()))
            more = os.read(self._in, 2**20) if ready else b""
            assert more, "the browser is gone, or says nothing"
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)


class Tab:
    """A tab of a browser.

    Parameters
    ----------
    browser : Browser
        Its browser.
    session : str
        By which the browser knows it.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.ask("Page.enable")
        self.ask("Log.enable")
        self.ask("Runtime.enable")

    def ask(self, method: str, **given: Any) -> Any:
        """Return what the browser answers to one call of its protocol."""
        return self._browser.ask(method, self._session, **given)

    def open(self, url: str) -> None:
        """Open a page; returns when it is loaded."""
        found = self.ask("Page.navigate", url=url)
        assert "errorText" not in found, found
        self._browser.event(self._session, "Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        """Return what an expression is in the page, as JSON has it."""
        found = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """Return the text that a person sees in an element."""
        found = self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
        assert isinstance(found, str)
        return found

    def wait_for(self, script: str) -> None:
        """Return when an expression is true in the page."""
        looks = (
            f"new Promise((done) => {{const look = () => ({script}) ? done(true) : "
            "setTimeout(look, 20); look();})"
        )
        late = f"new Promise((done) => setTimeout(() => done(false), {int(PATIENCE * 500)}))"
        assert self.evaluate(f"Promise.race([{looks}, {late}])"), f"it never became so: {script}"

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Show pages in a window of so many pixels."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefers(self, **features: str) -> None:
        """Prefer what media queries ask for: ``color_scheme="dark"``."""
        told = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        self.ask("Emulation.setEmulatedMedia", features=told)

    def without_scripts(self) -> None:
        """Run no script of pages from now on."""
        self.ask("Emulation.setScriptExecutionDisabled", value=True)

    def complaints(self) -> list[str]:
        """Return what the browser's console has of errors, such as what a policy refused."""
        self.evaluate("0")  # what comes before the answer to this has happened before
        found = []
        for message in self._browser._messages:
            if message.get("sessionId") != self._session:
                continue
            told = message["params"]
            if message["method"] == "Log.entryAdded" and told["entry"]["level"] == "error":
                found.append(told["entry"]["text"])
            if message["method"] == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"]))
        return found

    def screenshot(self, whole: bool = False) -> bytes:
        """Return a PNG of what is seen, or of the whole page."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return b64decode(found["data"])
