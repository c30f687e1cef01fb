"""Who stops listening, by closing, failing or being cancelled, leaves no connection behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
from runtime.models.asking import ASK, HELLO, failing, text
from runtime.models.server import Exchange, answering, delta, event, serving
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.models import ModelChunk, OpenAICompatible, RetryPolicy


async def endless(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.send(event(delta(content="Hel")))
    await exchange.gone()


async def test_closing_an_answer_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def step(exchange: Exchange) -> None:
        await endless(exchange)
        closed.set()

    async with serving(step) as server, OpenAICompatible(server.url, "m") as runtime:
        answer = runtime(ASK)
        assert (await anext(answer)).content == "Hel"
        await answer.aclose()
        await closed.wait()


async def test_a_failure_closes_its_connection_while_somebody_still_looks_at_it() -> None:
    closed = asyncio.Event()

    async def step(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(b"data: {broken\n\n")
        await exchange.gone()
        closed.set()

    async with serving(step) as server, OpenAICompatible(server.url, "m") as runtime:
        with pytest.raises(ModelFailed) as failed:
            await text(runtime)
        await closed.wait()
        assert failed.value.code == "model_failed"


@pytest.mark.parametrize("begun", [False, True])
async def test_cancelling_a_task_closes_its_connection(begun: bool) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()
    heard: list[str] = []

    async def step(exchange: Exchange) -> None:
        if begun:
            await exchange.begin()
            await exchange.send(event(delta(content="Hel")))
        else:
            asked.set()
        await exchange.gone()
        closed.set()

    async def listen(answer: AsyncGenerator[ModelChunk, None]) -> None:
        async for chunk in answer:
            heard.append(chunk.content)
            asked.set()

    async with serving(step) as server, OpenAICompatible(server.url, "m") as runtime:
        task = asyncio.create_task(listen(runtime(ASK)))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()
        assert heard == (["Hel"] if begun else [])


async def test_cancelling_while_waiting_to_ask_again_asks_no_more() -> None:
    waiting = asyncio.Event()

    async def wait(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with (
        serving(answering(b"", status=503)) as server,
        OpenAICompatible(server.url, "m", retry_policy=RetryPolicy(sleep=wait)) as runtime,
    ):
        task = asyncio.create_task(text(runtime))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(server.requests) == 1


async def test_closing_the_client_ends_its_answers_and_a_later_request_opens_it_anew() -> None:
    async with serving(endless, HELLO) as server:
        runtime = OpenAICompatible(server.url, "m")
        answer = runtime(ASK)
        await anext(answer)
        await runtime.aclose()
        with failing("cut_short"):
            await anext(answer)
        assert await text(runtime) == "Hello world"
        await runtime.aclose()
        await runtime.aclose()


async def test_a_client_that_is_given_stays_open() -> None:
    async with serving(HELLO) as server, httpx.AsyncClient() as client:
        async with OpenAICompatible(server.url, "m", client=client) as runtime:
            assert await text(runtime) == "Hello world"
        assert not client.is_closed
