"""A real browser in front of the dashboard: headless Chromium, and what the terminal in its page shows."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pyte
from playwright.async_api import Page, WebSocket, async_playwright

_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _BROWSERS)), None)
PATIENCE = 30.0
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def served(root: Path, *more: str) -> Iterator[str]:
    """The address that lets a browser in to the dashboard over the workspace at ``root``."""
    with server(root, *more) as (url, _):
        yield url


@contextmanager
def server(root: Path | str, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """As `served`, with the process that serves it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "watchroom_cli.main", "web", str(root), "--port", port, *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        yield found[0], process
    finally:
        process.terminate()
        process.communicate()


class Tab:
    """A page with the dashboard; it sees what the page's terminal was sent."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        width, height = (re.search(rf"{name}=(\d+)", socket.url) for name in ("width", "height"))
        assert width
        assert height
        self._screen.resize(int(height[1]), int(width[1]))
        socket.on("framereceived", self._feed)

    def _feed(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            self._stream.feed(payload)

    @property
    def text(self) -> str:
        return "\n".join(self._screen.display)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until it holds, as the page is told more."""
        for _ in range(int(PATIENCE / 0.05)):
            if holds():
                return
            await self.page.wait_for_timeout(50)
        raise AssertionError(f"{what}: was not seen; the screen is:\n{self.text}")

    async def sees(self, *texts: str) -> None:
        for text in texts:
            await self.until(lambda text=text: text in self.text, repr(text))  # type: ignore[misc]

    async def press(self, *keys: str) -> None:
        for key in keys:
            # A character is typed: some need shift on the keyboard.
            if len(key) == 1:
                await self.page.keyboard.type(key)
            else:
                await self.page.keyboard.press(key)


@asynccontextmanager
async def browser_at(url: str, *, width: int = 1200, height: int = 800) -> AsyncIterator[Tab]:
    """A browser that opens ``url``."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            page = await browser.new_page(viewport={"width": width, "height": height})
            tab = Tab(page)
            await page.goto(url)
            await page.locator("textarea").first.focus()
            yield tab
        finally:
            await browser.close()
