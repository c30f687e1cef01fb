"""The processes behind a page: how large they draw, and that they end with their server."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest
from watchroom import Workspace
from watchroom_tui.web import MAX_COLUMNS, MAX_ROWS
from web.browsing import PATIENCE, server

pytestmark = pytest.mark.slow(2)
ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@pytest.fixture
def team(root: Path) -> Path:
    Workspace.open(root, agents=["alice"]).close()
    return root


@asynccontextmanager
async def page(url: str, size: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """The connection of a page that was let in, and asks for so many cells."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(url) as answer:
            assert answer.status == 200
        place = url.partition("/?")[0]
        async with session.ws_connect(f"{place}/ws?{size}", max_msg_size=0) as socket:
            yield socket


async def sees(socket: aiohttp.ClientWebSocketResponse, text: bytes) -> bytes:
    """What the page is sent until ``text`` is part of it."""
    seen = b""
    async with asyncio.timeout(PATIENCE):
        while text not in seen:
            message = await socket.receive()
            assert message.type is aiohttp.WSMsgType.BINARY, message
            seen += message.data
    return seen


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
async def test_dashboards_end_with_their_server(team: Path, end: signal.Signals) -> None:
    with server(team) as (url, process):
        async with page(url, "width=80&height=24") as socket:
            await sees(socket, b"alice")
            dashboards = psutil.Process(process.pid).children(recursive=True)
            assert dashboards
            process.send_signal(end)
            await asyncio.to_thread(process.wait, PATIENCE)
            _, alive = await asyncio.to_thread(psutil.wait_procs, dashboards, PATIENCE)
            assert alive == []


@pytest.mark.postgres
async def test_a_workspace_in_a_database_is_served_by_its_address(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    address = new_database()
    Workspace.open(address, agents=["alice"], checkout=tmp_path / "checkout").close()
    with server(address) as (url, _):
        async with page(url, "width=80&height=24") as socket:
            await sees(socket, b"alice")


async def test_a_dashboard_ends_with_its_page(team: Path) -> None:
    with server(team) as (url, process):
        async with page(url, "width=80&height=24") as socket:
            await sees(socket, b"alice")
            dashboards = psutil.Process(process.pid).children(recursive=True)
        _, alive = await asyncio.to_thread(psutil.wait_procs, dashboards, PATIENCE)
        assert alive == []


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("width=1000000&height=1000000", (MAX_COLUMNS, MAX_ROWS)),
        ("width=-5&height=0", (1, 1)),
        (f"width={'9' * 4500}&height=x", (80, 24)),
    ],
)
async def test_a_page_cannot_ask_for_a_screen_of_any_size(
    team: Path, asked: str, given: tuple[int, int]
) -> None:
    with server(team) as (url, process):
        async with page(url, asked) as socket:
            await sees(socket, b"\x1b[?25l")
            (dashboard,) = psutil.Process(process.pid).children()
            around = dashboard.environ()
            assert (int(around["COLUMNS"]), int(around["ROWS"])) == given


async def test_nor_when_it_is_resized(team: Path) -> None:
    with server(team) as (url, _):
        async with page(url, "width=80&height=24") as socket:
            await sees(socket, b"alice")
            for odd in ({"width": None, "height": "x"}, {"width": 1e400, "height": 10**400}):
                await socket.send_json(["resize", odd])
            await socket.send_json(["resize", {"width": 10**6, "height": 10**6}])
            drawn = await sees(socket, b"\x1b[%d;1H" % MAX_ROWS)
            assert max(int(row) for row in re.findall(rb"\x1b\[(\d+);\d+H", drawn)) == MAX_ROWS


async def test_a_message_that_makes_no_sense_ends_its_page_only(team: Path) -> None:
    with server(team) as (url, _):
        async with page(url, "width=80&height=24") as other:
            for message in ("null", '["resize", {}]', '["stdin", "\\ud800"]', "[" * 100_000):
                async with page(url, "width=80&height=24") as socket:
                    await sees(socket, b"alice")
                    await socket.send_str(message)
                    async with asyncio.timeout(PATIENCE):
                        while (await socket.receive()).type is aiohttp.WSMsgType.BINARY:
                            pass
                    assert socket.close_code == aiohttp.WSCloseCode.UNSUPPORTED_DATA, message
            await other.send_json(["resize", {"width": 80, "height": 37}])
            await sees(other, b"\x1b[37;1H")
