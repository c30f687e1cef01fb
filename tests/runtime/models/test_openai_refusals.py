"""Servers that refuse: what they say is told without its secrets, and what may pass is asked again."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
from runtime.models.asking import HELLO, KEY, failing, text
from runtime.models.server import Exchange, answering, serving
from runtime.models.waits import Waits
from watchroom.features.sessions.runtime.models import OpenAICompatible


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
        OpenAICompatible(server.url, "m", api_key=KEY, retry_policy=waits.retry_policy()) as runtime,
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
        OpenAICompatible(server.url, "m", retry_policy=waits.retry_policy()) as runtime,
    ):
        assert await text(runtime) == "Hello world"
        assert waits.seconds == [0.25, 0.5]


async def test_the_server_says_when_to_ask_again(waits: Waits) -> None:
    def refuse(retry_after: str) -> Any:
        return answering(b"", status=429, headers={"Retry-After": retry_after})

    past, far = "Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 2055 23:59:59 GMT"
    async with (
        serving(refuse("7"), refuse(past), refuse(far), HELLO) as server,
        OpenAICompatible(server.url, "m", retry_policy=waits.retry_policy()) as runtime,
    ):
        assert await text(runtime) == "Hello world"
        assert waits.seconds == [7, 0, 60]


async def test_asking_again_has_an_end(waits: Waits) -> None:
    async with (
        serving(answering(b'{"error": "Too many"}', status=429)) as server,
        OpenAICompatible(server.url, "m", retry_policy=waits.retry_policy(2)) as runtime,
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
        OpenAICompatible(server.url, "m", retry_policy=waits.retry_policy()) as runtime,
    ):
        assert await text(runtime) == "Hello world"
        assert waits.seconds == [0.25]


async def test_a_server_that_is_not_there_is_a_failure_in_the_end(waits: Waits) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        async with OpenAICompatible(address, "m", api_key=KEY, retry_policy=waits.retry_policy(2)) as runtime:
            with failing("unreachable"):
                await text(runtime)
    assert len(waits.seconds) == 2
