"""What it costs to come in from elsewhere: ``python benchmarks/joining.py`` (shorter with ``SECONDS=5``)."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import quantiles

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from measure import Measure, interleaved, middle, ratio, scratch, table
from watchroom import Workspace

CLIENTS = 50
RATE = 2.0
"""Calls a second of each client."""
SECONDS = float(os.environ.get("SECONDS", "30"))
STEPS = (2.0, 3.0, 4.0, 6.0, 8.0)
"""Rates that are tried, one after the other, for as long as they are held."""
STEP_SECONDS = min(SECONDS, 8.0)
WITHIN = 0.25
_ROUNDS = 7

_SDK = "import mcp.server.lowlevel, mcp.server.stdio"
_OURS = "import sys; from watchroom_tui.cli import main; sys.exit(main(['mcp', {root!r}, '--agent', 'a0']))"


def measure() -> list[Measure]:
    return [*_cold(), *asyncio.run(_load())]


def _cold() -> list[Measure]:
    """The server from its start to its end, with nothing to serve, beside the import of the SDK alone."""
    with scratch() as root:
        Workspace.open(root, agents=["a0"]).close()

        def python(code: str) -> None:
            subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, check=True)

        ways = {
            "sdk": lambda _: python(_SDK),
            "ours": lambda _: python(_OURS.format(root=root)),
        }
        seconds = interleaved(ways, _ROUNDS, 1)
    ours, sdk = middle(seconds["ours"]), middle(seconds["sdk"])
    remark = f"{ours * 1000:.0f} ms ÷ {sdk * 1000:.0f} ms"
    return [
        Measure(
            "a stdio server ÷ importing the SDK",
            ratio(seconds["ours"], seconds["sdk"]),
            "×",
            1.5,
            remark=remark,
        )
    ]


async def _load() -> list[Measure]:
    names = [f"a{number}" for number in range(CLIENTS)]
    with scratch() as root, Workspace.open(root, agents=names) as workspace:
        tokens = [workspace.access.create("human:bench", name) for name in names]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "watchroom_tui.cli", "mcp", root, "--http", str(port)]
        process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}/mcp"
            await _answers(port)
            times, errors = await _calls(url, tokens, RATE, SECONDS)
            held = await _highest(url, tokens)
        finally:
            process.terminate()
            await process.wait()
        wrong = len(workspace.verify())
    each = f"{CLIENTS} clients, {RATE:g} calls a second each for {SECONDS:g} s"
    return [
        Measure(f"{each}: p99", _p99(times) * 1000, "ms", WITHIN * 1000, remark=f"{len(times)} calls"),
        Measure(f"{each}: median", middle([times]) * 1000, "ms"),
        Measure(f"{each}: errors", errors, "", 0),
        Measure("problems that verify finds", wrong, "", 0),
        Measure("the highest rate held, p99 within 250 ms", held, "/s", remark=f"{CLIENTS} clients"),
    ]


async def _highest(url: str, tokens: list[str]) -> float:
    held = 0.0
    for rate in STEPS:
        times, errors = await _calls(url, tokens, rate, STEP_SECONDS)
        wanted = len(tokens) * rate * STEP_SECONDS
        if errors or _p99(times) > WITHIN or len(times) < 0.97 * wanted:
            break
        held = len(times) / STEP_SECONDS
    return held


async def _calls(url: str, tokens: list[str], rate: float, seconds: float) -> tuple[list[float], int]:
    """How long each call took, and how many failed. Who falls behind does not catch up."""
    times: list[float] = []
    errors = 0

    async def one(number: int, token: str) -> None:
        nonlocal errors
        async with _client(url, token) as client:
            await client.list_tools()
            await all_here.wait()
            begin = time.perf_counter() + number / len(tokens) / rate
            for count in range(int(rate * seconds)):
                await asyncio.sleep(max(0.0, begin + count / rate - time.perf_counter()))
                started = time.perf_counter()
                tool, arguments = _call(number, count)
                result = await client.call_tool(tool, arguments)
                times.append(time.perf_counter() - started)
                errors += result.is_error and (result.structured_content or {}).get("is_conflict") is not True

    all_here = asyncio.Barrier(len(tokens))
    async with asyncio.TaskGroup() as group:
        for number, token in enumerate(tokens):
            group.create_task(one(number, token))
    return times, errors


def _call(number: int, count: int) -> tuple[str, dict[str, str]]:
    """Every other call writes, now and then to what others write, too."""
    if count % 10 == 9:
        return "collab_write", {
            "filepath": f"shared{number % 5}.md",
            "content": f"{number} {count}\n",
            "message": "m",
        }
    if count % 2:
        return "save_to_my_workspace", {"filename": f"{count % 7}.md", "content": f"{count}\n"}
    return "collab_list", {}


@asynccontextmanager
async def _client(url: str, token: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def _answers(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        await asyncio.sleep(0.05)
    raise TimeoutError("the server does not answer")


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100)[98]


if __name__ == "__main__":
    print(table(measure()))
