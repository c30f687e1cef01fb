"""The dashboard in a browser: the same one, run for each page that is open, behind a login.

Loopback only. Whoever has the token may do what the person at this machine may; other sites' pages, and
other names of this machine, are turned away before anything is run.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

HOST: Final = "127.0.0.1"
COOKIE: Final = "watchroom"
"""With the port: a browser sends a machine's cookies to all of its ports."""
_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " font-src 'self' data:; img-src 'self' data:; frame-ancestors 'none'"
)
"""Nothing is fetched from anywhere else, so it works without the internet."""


class WebDashboard(Server):
    """Serves what ``command`` (a shell's line) shows. ``refusal`` is what those read who have no token."""

    def __init__(
        self, command: str, port: int, token: str, *, title: str, refusal: str, started: Callable[[str], None]
    ) -> None:
        super().__init__(command, host=HOST, port=port, title=title)
        self._token = token
        self._cookie = f"{COOKIE}-{port}"
        self._refusal = refusal
        self._started = started

    @property
    def login_url(self) -> str:
        """Where a browser is let in."""
        return f"{self.public_url}/?{urlencode({'token': self._token})}"

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard())
        return app

    async def on_startup(self, app: web.Application) -> None:
        self._started(self.login_url)

    def initialize_logging(self) -> None:
        """What is logged goes where the command's logs go."""

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.host != f"{HOST}:{self.port}":
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
