"""Answers that break off, are garbage or never come: the client says so, and lets nothing pass for whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from runtime.models.asking import ASK, KEY, failing, text
from runtime.models.server import DONE, Exchange, answering, delta, event, said, serving
from runtime.models.waits import Waits
from watchroom.features.sessions.runtime.models import OpenAICompatible, Timeouts


async def broken_off(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.send(event(delta(content="Hel")))
    exchange.cut()
    await exchange.gone()


async def ended_early(exchange: Exchange) -> None:
    await exchange.answer(event(delta(content="Hel")))


@pytest.mark.parametrize("step", [broken_off, ended_early])
async def test_an_answer_that_breaks_off_is_a_failure_and_not_asked_for_again(
    step: Any, waits: Waits
) -> None:
    heard: list[str] = []
    async with (
        serving(step) as server,
        OpenAICompatible(server.url, "m", retry_policy=waits.retry_policy()) as runtime,
    ):
        with failing("cut_short"):
            async for chunk in runtime(ASK):
                heard.append(chunk.content)  # noqa: PERF401  What comes before the failure is wanted.
        assert heard == ["Hel"]
        assert (len(server.requests), waits.seconds) == (1, [])


async def test_a_connection_that_breaks_after_the_end_takes_nothing_away() -> None:
    async def cut_after_the_end(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(said("Hello").removesuffix(DONE))
        exchange.cut()

    async with serving(cut_after_the_end) as server, OpenAICompatible(server.url, "m") as runtime:
        assert await text(runtime) == "Hello"


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (event(delta(content="Hel")) + b"data: {broken\n\n", "broken"),
        (event(delta(content="Hel")) + event({"error": {"message": f"No room for {KEY}"}}), "reported"),
        (b": " + b"x" * 10_000, "too_long"),
        (b"<html>hello</html>", "not_an_answer"),
    ],
)
async def test_garbage_is_a_failure(body: bytes, rule: str) -> None:
    async with (
        serving(answering(body, content_type="text/html")) as server,
        OpenAICompatible(server.url, "m", api_key=KEY, max_answer_bytes=9_000) as runtime,
    ):
        with failing(rule):
            await text(runtime)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "socks4://127.0.0.1:9"])
async def test_a_proxy_that_cannot_be_used_is_a_failure(
    proxy: str, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    async with OpenAICompatible(
        "http://model.example/v1", "m", api_key=KEY, retry_policy=waits.retry_policy(1)
    ) as runtime:
        with failing("unreachable"):
            await text(runtime)


async def test_a_server_that_does_not_speak_http_is_a_failure(waits: Waits) -> None:
    async def garble(exchange: Exchange) -> None:
        await exchange.raw(b"\0\1\2 nonsense\r\n\r\n")

    async with (
        serving(garble) as server,
        OpenAICompatible(server.url, "m", retry_policy=waits.retry_policy(1)) as runtime,
    ):
        with failing("unreachable"):
            await text(runtime)


@pytest.mark.parametrize("sent", [None, b"", event(delta(content="Hel"))])
async def test_a_server_that_falls_silent_is_a_failure(sent: bytes | None) -> None:
    closed = asyncio.Event()

    async def stall(exchange: Exchange) -> None:
        try:
            if sent is not None:
                await exchange.begin()
            if sent:
                await exchange.send(sent)
            await exchange.gone()
        finally:
            closed.set()

    times = Timeouts(first=30 if sent else 0.02, stall=0.02)
    async with serving(stall) as server, OpenAICompatible(server.url, "m", timeouts=times) as runtime:
        with failing("silent") as values:
            await text(runtime)
        assert values["seconds"] == 0.02
        # On a busy machine the client may be gone before the server has seen its request.
        if sent or server.requests:
            await closed.wait()


async def test_a_compressed_answer_that_is_broken_is_a_failure() -> None:
    step = answering(b"no gzip", headers={"content-encoding": "gzip"})
    async with serving(step) as server, OpenAICompatible(server.url, "m") as runtime:
        with failing("cut_short"):
            await text(runtime)
