"""Frames of web sockets, as the page of the dashboard in a browser sends them."""

from __future__ import annotations

import json
import socket
from collections.abc import Hashable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

import aiohttp
from aiohttp import web
from watchroom.model import Json
from watchroom_tui.web import HOST, MAX_COLUMNS, MAX_ROWS, WebDashboard

from reliability.fuzzing.async_target import AsyncTarget
from reliability.fuzzing.mutation import HOSTILE, NUMBERS, mutated, mutated_json, some_json, to_bytes
from reliability.fuzzing.oracle import Broken, require

_TOKENS: Final = (b'["', b'",', b"[", b"]", b"}", b",", b"\\ud800", b"null", b"9" * 5000, b"[" * 3000)
_FRAMES: Final[Sequence[Json]] = (
    ["stdin", "x"],
    ["stdin", "\x1b[A\x1b[M !!"],
    ["stdin", "\x1b[200~paste\x1b[201~"],
    ["resize", {"width": 80, "height": 24}],
    ["resize", {"width": 10**9, "height": -1}],
    ["ping", 1],
    ["blur"],
    ["focus"],
    [],
    {},
)
_FRAME_LEAVES: Final[Sequence[Json]] = (
    *("stdin", "resize", "ping", "blur", "focus", "width", "height", "\ud800", *HOSTILE, *NUMBERS),
    {},
    [],
    {"width": 80},
    {"width": "80", "height": None},
)


class WebSocketFrames(AsyncTarget):
    """Checks that a frame of the page is passed on, ignored, or ends only that page."""

    name = "web"

    async def begin(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self._packets = self.top / "packets"
        self._packets.mkdir()
        dashboard = WebDashboard(
            # Stands in for a dashboard, which would draw, and end on request. Its input is kept.
            f"printf '__GANGLION__\\n'; exec timeout 1 cat > {self._packets}/$$",
            self._listener,
            "token",
            title="fuzz",
            refusal="no",
            on_start=lambda url: None,
        )
        self._server = web.AppRunner(await dashboard._make_app())
        await self._server.setup()
        await web.SockSite(self._server, self._listener).start()
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self._page: aiohttp.ClientWebSocketResponse | None = None
        self._address = f"http://{HOST}:{self._listener.getsockname()[1]}"
        async with self._session.get(dashboard.login_url) as answer:
            require(answer.status == 200, answer.status)

    async def end(self) -> None:
        if self._page is not None:
            await self._page.close()
        await self._session.close()
        await self._server.cleanup()

    async def send(self, data: bytes) -> Hashable:
        self._number += 1
        if self._page is None or self._page.closed:
            self._page = await self._session.ws_connect(f"{self._address}/ws?width=80&height=24")
        page = self._page
        if self._number % 20:
            await page.send_str(data.decode("utf-8", "replace"))
        else:
            await page.send_bytes(data)
        with suppress(ConnectionError):
            await page.send_json(["ping", f"end-{self._number}"])
        kinds: list[Hashable] = [data[:12]]
        while True:
            message = await page.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                require(page.close_code in (1000, 1003, 1007), ("closed with", page.close_code))
                self._page = None
                return *kinds[:3], page.close_code
            told = message.json()
            if told == ["pong", f"end-{self._number}"]:
                return tuple(kinds[:3])
            kinds.append(str(told[0]))

    def check(self) -> Sequence[str]:
        """Return problems, also of the packets passed to the pages' processes: they must be complete, with
        possible sizes."""
        found = [*super().check()]
        for path in self._packets.iterdir():
            try:
                _check_packets(path.read_bytes())
            except Broken as problem:
                found.append(str(problem))
        return found

    def generate(self, chance: Random) -> bytes:
        if chance.random() < 0.2:
            return to_bytes(some_json(chance, _FRAME_LEAVES))
        return to_bytes(chance.choice(_FRAMES))

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        if chance.random() < 0.7:
            with suppress(ValueError, RecursionError):
                return to_bytes(mutated_json(json.loads(data), chance, _FRAME_LEAVES))
        return mutated(data, chance, self.size, _TOKENS, other)


def _check_packets(data: bytes) -> None:
    at = 0
    while at + 5 <= len(data):
        kind, size = data[at : at + 1], int.from_bytes(data[at + 1 : at + 5], "big")
        require(kind in (b"D", b"M"), ("a packet of no kind", data[at : at + 20]))
        packet = data[at + 5 : at + 5 + size]
        if kind == b"M" and len(packet) == size:
            told = json.loads(packet)
            if told["type"] == "resize":
                require(1 <= told["width"] <= MAX_COLUMNS and 1 <= told["height"] <= MAX_ROWS, told)
        at += 5 + size
