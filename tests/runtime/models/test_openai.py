"""The client against a real server on the loopback, which does all that servers and networks do."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import httpx
import pytest
from runtime.models.server import DONE, Exchange, answering, delta, event, said, serving
from watchroom.errors import ModelFailed
from watchroom.runtime.messages import UserMessage
from watchroom.runtime.models import (
    ModelChunk,
    ModelPayload,
    ModelRuntime,
    OpenAICompatible,
    Patience,
    Timeouts,
    Usage,
)

ASK = ModelPayload(messages=(UserMessage(content="Hi", author="human:ana"),))
KEY = "sk-very-secret-0123456789"
HELLO = answering(said("Hello", " world"))


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Waits:
    """Takes the place of waiting: notes how long it should have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def patience(self, retries: int = 3) -> Patience:
        return Patience(retries=retries, jitter=lambda: 0.0, sleep=self.sleep)


@pytest.fixture
def waits() -> Waits:
    return Waits()


async def text(runtime: OpenAICompatible, payload: ModelPayload = ASK) -> str:
    return "".join([chunk.content async for chunk in runtime(payload)])


@contextmanager
def failing(rule: str) -> Iterator[dict[str, Any]]:
    """Expects a failure by this rule, and that no key is told; gives its values."""
    values: dict[str, Any] = {}
    with pytest.raises(ModelFailed) as failed:
        yield values
    values |= failed.value.values
    assert values["rule"] == rule, values
    seen: BaseException | None = failed.value
    while seen is not None:
        assert KEY not in f"{seen!r} {seen}"
        seen = seen.__cause__


# -- answers


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


# -- answers that are none


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
        OpenAICompatible(server.url, "m", patience=waits.patience()) as runtime,
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


async def test_a_server_that_does_not_speak_http_is_a_failure(waits: Waits) -> None:
    async def garble(exchange: Exchange) -> None:
        await exchange.raw(b"\0\1\2 nonsense\r\n\r\n")

    async with (
        serving(garble) as server,
        OpenAICompatible(server.url, "m", patience=waits.patience(1)) as runtime,
    ):
        with failing("unreachable"):
            await text(runtime)


@pytest.mark.parametrize("sent", [None, b"", event(delta(content="Hel"))])
async def test_a_server_that_falls_silent_is_a_failure(sent: bytes | None) -> None:
    closed = asyncio.Event()

    async def stall(exchange: Exchange) -> None:
        if sent is not None:
            await exchange.begin()
        if sent:
            await exchange.send(sent)
        await exchange.gone()
        closed.set()

    times = Timeouts(first=30 if sent else 0.02, stall=0.02)
    async with serving(stall) as server, OpenAICompatible(server.url, "m", timeouts=times) as runtime:
        with failing("silent") as values:
            await text(runtime)
        assert values["seconds"] == 0.02
        await closed.wait()


async def test_a_compressed_answer_that_is_broken_is_a_failure() -> None:
    step = answering(b"no gzip", headers={"content-encoding": "gzip"})
    async with serving(step) as server, OpenAICompatible(server.url, "m") as runtime:
        with failing("cut_short"):
            await text(runtime)


# -- refusals


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, b'{"error": {"message": "Incorrect key: %s", "code": 7}}' % KEY.encode(), "Incorrect key: […]"),
        (404, b'{"detail": "Not\\n Found"}', "Not Found"),
        (400, b"[" * 70_000, "[" * 300 + "…"),
        (400, b"\xff\n", "\ufffd"),
        (451, b"", "Status"),
    ],
)
async def test_a_refusal_says_what_the_server_said(
    status: int, body: bytes, problem: str, waits: Waits
) -> None:
    step = answering(body, status=status, content_type="application/json")
    async with (
        serving(step) as server,
        OpenAICompatible(server.url, "m", api_key=KEY, patience=waits.patience()) as runtime,
    ):
        with failing("refused") as values:
            await text(runtime)
        assert values == {"rule": "refused", "status": status, "problem": problem}
        assert waits.seconds == []


async def test_a_refusal_counts_even_if_its_body_breaks_off() -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.begin(403)
        await exchange.send(b"No entry")
        exchange.cut()

    async with serving(refuse) as server, OpenAICompatible(server.url, "m") as runtime:
        with failing("refused") as values:
            await text(runtime)
        assert values == {"rule": "refused", "status": 403, "problem": "No entry"}


async def test_secrets_in_headers_and_addresses_are_not_told_either() -> None:
    step = answering(f"{KEY} hunter2x abc7".encode(), status=400)
    async with serving(step) as server:
        address = server.url.replace("//", "//ana:hunter2x@") + "?version=1&Key=abc7"
        async with OpenAICompatible(address, "m", headers={"API-Key": KEY}) as runtime:
            with failing("refused") as values:
                await text(runtime)
            assert values["problem"] == "[…] […] […]"


@pytest.mark.parametrize("follows", [True, False])
async def test_a_key_is_never_taken_to_another_address(follows: bool) -> None:
    async with serving(HELLO) as elsewhere:
        step = answering(b"", status=307, headers={"location": f"{elsewhere.url}/{KEY}"})
        async with (
            serving(step) as server,
            httpx.AsyncClient(follow_redirects=follows) as client,
            OpenAICompatible(server.url, "m", api_key=KEY, client=client) as runtime,
        ):
            with failing("redirected") as values:
                await text(runtime)
        assert values["problem"] == f"{elsewhere.url}/[…]"
        assert elsewhere.requests == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_refusal_that_may_pass_is_asked_again(status: int, waits: Waits) -> None:
    refuse = answering(b"{}", status=status)
    async with (
        serving(refuse, refuse, HELLO) as server,
        OpenAICompatible(server.url, "m", patience=waits.patience()) as runtime,
    ):
        assert await text(runtime) == "Hello world"
        assert waits.seconds == [0.25, 0.5]


async def test_the_server_says_when_to_ask_again(waits: Waits) -> None:
    def refuse(retry_after: str) -> Any:
        return answering(b"", status=429, headers={"Retry-After": retry_after})

    past, far = "Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 2055 23:59:59 GMT"
    async with (
        serving(refuse("7"), refuse(past), refuse(far), HELLO) as server,
        OpenAICompatible(server.url, "m", patience=waits.patience()) as runtime,
    ):
        assert await text(runtime) == "Hello world"
        assert waits.seconds == [7, 0, 60]


async def test_asking_again_has_an_end(waits: Waits) -> None:
    async with (
        serving(answering(b'{"error": "Too many"}', status=429)) as server,
        OpenAICompatible(server.url, "m", patience=waits.patience(2)) as runtime,
    ):
        with failing("refused") as values:
            await text(runtime)
        assert values == {"rule": "refused", "status": 429, "problem": "Too many"}
        assert (len(server.requests), len(waits.seconds)) == (3, 2)


async def test_a_connection_that_breaks_before_the_answer_is_made_again(waits: Waits) -> None:
    async def hang_up(exchange: Exchange) -> None:
        exchange.cut()

    async with (
        serving(hang_up, HELLO) as server,
        OpenAICompatible(server.url, "m", patience=waits.patience()) as runtime,
    ):
        assert await text(runtime) == "Hello world"
        assert waits.seconds == [0.25]


async def test_a_server_that_is_not_there_is_a_failure_in_the_end(waits: Waits) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        async with OpenAICompatible(address, "m", api_key=KEY, patience=waits.patience(2)) as runtime:
            with failing("unreachable"):
                await text(runtime)
    assert len(waits.seconds) == 2


# -- letting go


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
        OpenAICompatible(server.url, "m", patience=Patience(sleep=wait)) as runtime,
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
        "import sys, watchroom.runtime.models as models; early = models.__name__ + '.openai' in sys.modules;"
        "models.OpenAICompatible('http://localhost', 'm'); print(early, 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_there_is_nothing_else() -> None:
    import watchroom.runtime.models as models

    assert all(hasattr(models, name) for name in models.__all__)
    with pytest.raises(AttributeError):
        _ = models.nothing
