"""The client against a real server on the loopback, which does all that servers and networks do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from contextlib import aclosing

import pytest
from runtime.models.asking import ASK, HELLO, KEY, failing, text
from runtime.models.server import DONE, Exchange, answering, delta, event, said, serving
from watchroom.features.sessions.runtime.models import (
    ModelChunk,
    ModelRuntime,
    OpenAICompatible,
    Timeouts,
    Usage,
)


async def test_an_answer_comes_in_chunks() -> None:
    body = said("Hello", " world").removesuffix(DONE)
    usage = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    async with (
        serving(answering(body + usage + DONE)) as server,
        OpenAICompatible(server.url, "m") as runtime,
    ):
        asked: ModelRuntime = runtime
        assert [chunk async for chunk in asked(ASK)] == [
            ModelChunk(content="Hello"),
            ModelChunk(content=" world"),
            ModelChunk(finish_reason="stop"),
            ModelChunk(usage=Usage(input_tokens=9, output_tokens=2)),
        ]
        (request,) = server.requests
        assert (request.method, request.target) == ("POST", "/v1/chat/completions")
        assert request.headers["content-type"] == "application/json"
        assert "authorization" not in request.headers
        assert request.json() == {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }


async def test_an_answer_may_come_byte_by_byte() -> None:
    async def drip(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(*[bytes([byte]) for byte in said("Grüße", " 😀")])
        await exchange.finish()

    async with serving(drip) as server, OpenAICompatible(server.url, "m") as runtime:
        assert await text(runtime) == "Grüße 😀"


async def test_a_chunk_is_given_before_the_next_is_sent() -> None:
    seen = asyncio.Event()

    async def wait_in_between(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(event(delta(content="a")))
        await seen.wait()
        await exchange.send(said("b"))
        await exchange.finish()

    async with (
        serving(wait_in_between) as server,
        OpenAICompatible(server.url, "m") as runtime,
        aclosing(runtime(ASK)) as answer,
    ):
        assert (await anext(answer)).content == "a"
        seen.set()
        assert (await anext(answer)).content == "b"


async def test_a_server_that_does_not_stream_is_understood() -> None:
    body = b'{"choices": [{"message": {"content": "Hello"}, "finish_reason": "length"}]}'
    async with (
        serving(answering(body, content_type="application/json")) as server,
        OpenAICompatible(server.url, "m", include_usage=False) as runtime,
    ):
        assert [chunk async for chunk in runtime(ASK)] == [
            ModelChunk(content="Hello", finish_reason="length")
        ]
        assert "stream_options" not in server.requests[0].json()


@pytest.mark.parametrize(
    ("tail", "target"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/?version=2", "/v1/chat/completions?version=2"),
    ],
)
async def test_the_address_may_end_in_a_slash_or_a_query(tail: str, target: str) -> None:
    async with serving(HELLO) as server, OpenAICompatible(server.url + tail, "m") as runtime:
        await text(runtime)
        assert server.requests[0].target == target


async def test_key_and_headers_are_sent() -> None:
    async with (
        serving(HELLO) as server,
        OpenAICompatible(server.url, "m", api_key=f" {KEY}\n", headers={"X-Title": "Team"}) as runtime,
    ):
        await text(runtime)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[0].headers["x-title"] == "Team"


async def test_a_whole_answer_leaves_its_connection_to_the_next() -> None:
    async with serving(HELLO) as server, OpenAICompatible(server.url, "m") as runtime:
        assert [await text(runtime) for _ in range(3)] == ["Hello world"] * 3
        assert (len(server.requests), server.connections) == (3, 1)


async def test_answers_come_side_by_side() -> None:
    together = asyncio.Barrier(30)

    async def meet(exchange: Exchange) -> None:
        await together.wait()
        await HELLO(exchange)

    async with serving(meet) as server, OpenAICompatible(server.url, "m") as runtime:
        assert await asyncio.gather(*[text(runtime) for _ in range(30)]) == ["Hello world"] * 30


async def test_what_a_server_says_after_the_end_does_not_cost_the_connection() -> None:
    async def chatty(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(said("Hello"), b": bye\n\n")
        await exchange.finish()

    async with serving(chatty) as server, OpenAICompatible(server.url, "m") as runtime:
        assert [await text(runtime) for _ in range(2)] == ["Hello"] * 2
        assert server.connections == 1


@pytest.mark.parametrize("end", [b"", DONE])
async def test_a_whole_answer_does_not_wait_long_for_the_end_of_its_stream(end: bytes) -> None:
    closed = asyncio.Event()

    async def never_end(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(said("Hello").removesuffix(DONE) + end)
        await exchange.gone()
        closed.set()

    times = Timeouts(linger=0.01)
    async with serving(never_end) as server, OpenAICompatible(server.url, "m", timeouts=times) as runtime:
        assert await text(runtime) == "Hello"
        await closed.wait()


# -- what is given wrongly


@pytest.mark.parametrize(
    "address", ["", "localhost:8000", "ftp://host", "http://", "http://[::1", "http://a..b", "http://h:99999"]
)
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with failing("address"):
        OpenAICompatible(address, "m")


async def test_an_address_that_only_the_client_refuses_is_refused_when_asked() -> None:
    async with OpenAICompatible("http://☃.net", "m") as runtime:
        with failing("address"):
            await text(runtime)


@pytest.mark.parametrize(
    ("key", "headers"),
    [(f"{KEY}\r\nx: y", {}), (f"{KEY}é", {}), (None, {"x y": "z"}), (None, {"api-key": f"{KEY}\0"})],
)
def test_what_cannot_be_a_header_is_refused_at_once(key: str | None, headers: Mapping[str, str]) -> None:
    with failing("credentials"):
        OpenAICompatible("http://localhost", "m", api_key=key, headers=headers)


def test_what_it_is_shown_as_tells_no_secret() -> None:
    shown = repr(OpenAICompatible(f"http://ana:{KEY}@host:1/v1/?key={KEY}", "m", api_key=KEY))
    assert shown == "OpenAICompatible('http://host:1/v1/chat/completions', 'm')"


def test_what_is_not_used_is_not_loaded() -> None:
    program = (
        "import sys, watchroom.features.sessions.runtime.models as models; early = models.__name__ + '.openai' in sys.modules;"
        "models.OpenAICompatible('http://localhost', 'm'); print(early, 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_there_is_nothing_else() -> None:
    import watchroom.features.sessions.runtime.models as models

    assert all(hasattr(models, name) for name in models.__all__)
    with pytest.raises(AttributeError):
        _ = models.nothing
