"""The dashboard in a browser: one process for each open page, behind a login.

The server listens on the loopback interface only. Anyone with the token can do everything that the person at
this machine can do. Requests from pages of other sites, and requests for other host names, are refused before
any handler runs.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from signal import SIGINT, SIGTERM
from socket import socket
from typing import Final
from urllib.parse import urlencode, urlsplit

from aiohttp import WSCloseCode, web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.app_service import AppService
from textual_serve.server import Server

from watchroom_tui.textual_compat import process_messages, require

HOST: Final = "127.0.0.1"
COOKIE: Final = "watchroom"
"""Prefix of the cookie's name. The port is appended, because browsers send the cookies of a host to all of
its ports."""
_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " font-src 'self' data:; img-src 'self' data:; frame-ancestors 'none'"
)
"""Content security policy. It allows resources from this server only, so the page works without the
internet."""
MAX_COLUMNS: Final = 500
MAX_ROWS: Final = 200
"""Maximum number of rows and columns of a page's terminal, because the cost of a frame grows with its
cells."""
_COLUMNS: Final = 80
_ROWS: Final = 24
_HEARTBEAT: Final = 15.0
"""Seconds between checks for closed pages."""
_GRACE: Final = 5.0
"""Timeout in seconds for open pages when the server stops."""

_NONSENSE: Final = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors from malformed messages, which the page's own script never sends."""

require(Server, "_make_app", "_process_messages")


class DashboardProcess(AppService):
    """The process of one page, with a limited terminal size."""

    async def set_terminal_size(self, width: object, height: object) -> None:
        """Set the size. Values that are not numbers are ignored."""
        if isinstance(width, int) and isinstance(height, int):
            await super().set_terminal_size(_within(width, MAX_COLUMNS), _within(height, MAX_ROWS))


class WebDashboard(Server):
    """Server that runs a command for each page and sends its output.

    - ``command``: the shell command.
    - ``listener``: the socket, bound to `HOST`.
    - ``token``: the token for the login.
    - ``refusal``: the text for requests without the token.
    - ``on_start``: callback for the start of the server. Its argument is the `login_url`.
    - ``beside``: returns a context that lasts as long as the server, such as another server; default none.
    """

    def __init__(
        self,
        command: str,
        listener: socket,
        token: str,
        *,
        title: str,
        refusal: str,
        on_start: Callable[[str], None],
        beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        port: int = listener.getsockname()[1]
        super().__init__(command, host=HOST, port=port, title=title)
        self._listener = listener
        self._token = token
        self._cookie = f"{COOKIE}-{port}"
        self._refusal = refusal
        self._started = on_start
        self._beside = beside
        self._pages: set[web.WebSocketResponse] = set()

    @property
    def login_url(self) -> str:
        """The address for the login of a browser, with the token."""
        return f"{self.public_url}/?{urlencode({'token': self._token})}"

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard())
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing."""

    def serve(self, debug: bool = False) -> None:
        """Serve until SIGINT or SIGTERM."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        for each in (SIGINT, SIGTERM):
            loop.add_signal_handler(each, stopped.set)
        runner = web.AppRunner(await self._make_app(), shutdown_timeout=_GRACE)
        try:
            await runner.setup()
            await web.SockSite(runner, self._listener).start()
            async with self._beside():
                self._started(self.login_url)
                await stopped.wait()
        finally:
            await runner.cleanup()

    async def on_shutdown(self, app: web.Application) -> None:
        # Otherwise the server would wait for its pages to close.
        for page in tuple(self._pages):
            await page.close(code=WSCloseCode.GOING_AWAY)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a dashboard for a page until the page or the dashboard ends."""
        page = web.WebSocketResponse(heartbeat=_HEARTBEAT)
        await page.prepare(request)
        self._pages.add(page)
        dashboard = DashboardProcess(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=page.close,  # type: ignore[arg-type]  # whether it was open already does not matter
            download_manager=self.download_manager,
        )
        try:
            width = _within(_number(request.query.get("width"), _COLUMNS), MAX_COLUMNS)
            height = _within(_number(request.query.get("height"), _ROWS), MAX_ROWS)
            await dashboard.start(width, height)
            await process_messages(self, page, dashboard)
        except _NONSENSE:
            await page.close(code=WSCloseCode.UNSUPPORTED_DATA)
        finally:
            self._pages.discard(page)
            await dashboard.stop()
        return page

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.host != urlsplit(self.public_url).netloc:
                return web.Response(status=421, text=self._refusal)
            origin = request.headers.get("Origin")
            if origin is not None and origin != f"http://{request.host}":
                return web.Response(status=403, text=self._refusal)
            given = request.query.get("token")
            if request.path == "/" and given is not None and self._is_token(given):
                response = web.HTTPFound("/")
                response.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict", path="/")
                return response
            if not self._is_token(request.cookies.get(self._cookie, "")):
                return web.Response(status=401, text=self._refusal)
            answer = await handler(request)
            if not answer.prepared:
                answer.headers["Content-Security-Policy"] = _POLICY
                answer.headers["Referrer-Policy"] = "no-referrer"
            return answer

        return guard

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


def _number(text: str | None, default: int) -> int:
    # Python refuses to convert very long numbers.
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else default


def _within(number: int, maximum: int) -> int:
    return max(1, min(number, maximum))
