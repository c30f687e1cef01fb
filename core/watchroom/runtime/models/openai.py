"""A client for every server that speaks the chat completions API of OpenAI, hosted or local."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from watchroom.errors import ModelFailed
from watchroom.runtime.models.chat_completions import (
    AnswerReader,
    extract_message,
    request_body,
    sanitize_message,
)
from watchroom.runtime.models.protocol import ModelChunk, ModelPayload
from watchroom.runtime.models.retry_policy import RetryPolicy

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES: Final = 128 * 1024 * 1024
"""Of the body as it comes: each word of a streamed answer takes some 300 bytes there."""

_MAX_REFUSAL_BYTES: Final = 64 * 1024
_SECRET_NAME: Final = re.compile("auth|cookie|key|secret|token")
_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[ -~]*")


class Timeouts(NamedTuple):
    """How many seconds to wait at most."""

    connect: float = 10.0
    first: float = 300.0
    """For the first byte of an answer: a local model may read a long conversation for minutes."""
    stall: float = 60.0
    """For each further byte. A server's keep-alives count."""
    linger: float = 2.0
    """For what may follow an answer that is whole: its usage, and the end of the stream."""


_TIMEOUTS: Final = Timeouts()
_RETRY_POLICY: Final = RetryPolicy()


class OpenAICompatible:
    """A model over HTTP: the model ``model`` of a server that speaks the chat completions API of OpenAI.
    ``/chat/completions`` is appended to ``base_url``.

    ``api_key`` and ``headers`` are sent with each request, and never appear in an error. ``timeouts`` and
    ``retry_policy`` say how long to wait and how often to try again. An answer longer than
    ``max_answer_bytes`` is an error. ``include_usage`` asks for token counts, which some servers refuse.
    Connections are shared by all requests until `aclose`; use it (or ``async with``) within one event loop. A
    ``client`` that is given is not closed. Failures are `ModelFailed`.

        async with OpenAICompatible("http://localhost:11434/v1", "qwen3") as model:
            agent = ChatAgent(agent_tools(toolbox), model_runtime=model)
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        retry_policy: RetryPolicy = _RETRY_POLICY,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        include_usage: bool = True,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._url = _build_endpoint(base_url)
        self._headers = _headers(api_key, headers or {})
        self._secrets = _secrets(self._headers, base_url)
        self._model = model
        self._timeouts = timeouts
        self._patience = retry_policy
        self._max_answer_bytes = max_answer_bytes
        self._include_usage = include_usage
        self._given = client
        self._own: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    def __repr__(self) -> str:
        parts = urlsplit(self._url)
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        return f"OpenAICompatible({shown!r}, {self._model!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Answers that are arriving fail; a later request opens new ones."""
        client, self._own = self._own, None
        if client is not None:
            await client.aclose()

    async def __call__(self, payload: ModelPayload) -> AsyncGenerator[ModelChunk, None]:
        """The answer to ``payload``. Closing the generator closes its connection."""
        body = request_body(payload, self._model, include_usage=self._include_usage)
        response = await self._response(body)
        try:
            reader = AnswerReader(self._max_answer_bytes, self._secrets)
            pieces = response.aiter_bytes()
            data = await self._next_bytes(pieces, self._timeouts.first, reader)
            while data is not None:
                for chunk in reader.feed(data):
                    yield chunk
                if reader.done:
                    await self._drain(pieces)
                    return
                wait = self._timeouts.linger if reader.whole else self._timeouts.stall
                data = await self._next_bytes(pieces, wait, reader)
            for chunk in reader.end(response.headers.get("content-type", "")):
                yield chunk
        finally:
            await response.aclose()

    async def _next_bytes(
        self, pieces: AsyncIterator[bytes], wait: float, reader: AnswerReader
    ) -> bytes | None:
        """The next bytes; None at their end. An answer that is whole already may end in any way."""
        import httpx

        try:
            async with asyncio.timeout(wait):
                return await anext(pieces, None)
        except (TimeoutError, httpx.RequestError) as error:
            if reader.whole:
                return None
            if isinstance(error, TimeoutError):
                raise ModelFailed(rule="silent", seconds=wait) from error
            raise ModelFailed(rule="cut_short") from error

    async def _drain(self, pieces: AsyncIterator[bytes]) -> None:
        """Reads the end of the stream, so that its connection can be used again. Without one it is closed."""
        import httpx

        with suppress(TimeoutError, httpx.RequestError):
            async with asyncio.timeout(self._timeouts.linger):
                async for _ in pieces:
                    pass

    async def _response(self, body: bytes) -> httpx.Response:
        """The beginning of an answer, asked for again while there is reason to hope."""
        client = await self._client()
        failures = 0
        while True:
            found = await self._try_request(client, body)
            if not isinstance(found, _Refusal):
                return found
            failures += 1
            if not found.passes or failures > self._patience.retries:
                raise found.failure from found.cause
            await self._patience.sleep(self._patience.wait(failures, found.retry_after))

    async def _client(self) -> httpx.AsyncClient:
        if self._given is not None:
            return self._given
        async with self._opening:
            if self._own is None:
                # Loading httpx and certificates takes a tenth of a second, and the loop has screens to draw.
                self._own = await asyncio.to_thread(_open_client)
            return self._own

    async def _try_request(self, client: httpx.AsyncClient, body: bytes) -> httpx.Response | _Refusal:
        import httpx

        times = self._timeouts
        timeout = httpx.Timeout(times.stall, connect=times.connect, read=None, pool=None)
        try:
            request = client.build_request(
                "POST", self._url, content=body, headers=self._headers, timeout=timeout
            )
            async with asyncio.timeout(times.first):
                response = await client.send(request, stream=True, follow_redirects=False)
        except httpx.InvalidURL as error:
            return _Refusal(ModelFailed(rule="address"), cause=error)
        except TimeoutError as error:
            return _Refusal(ModelFailed(rule="silent", seconds=times.first), cause=error)
        except httpx.RequestError as error:
            problem = sanitize_message(str(error) or type(error).__name__, self._secrets)
            passing = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout)
            return _Refusal(
                ModelFailed(rule="unreachable", problem=problem), isinstance(error, passing), cause=error
            )
        if response.is_success:
            return response
        try:
            return await self._build_refusal(response)
        finally:
            await response.aclose()

    async def _build_refusal(self, response: httpx.Response) -> _Refusal:
        status, location = response.status_code, response.headers.get("location")
        if response.is_redirect and location:
            problem = sanitize_message(location, self._secrets)
            return _Refusal(ModelFailed(rule="redirected", status=status, problem=problem))
        body = await self._read_body(response)
        problem = sanitize_message(extract_message(body) or response.reason_phrase, self._secrets)
        failure = ModelFailed(rule="refused", status=status, problem=problem)
        return _Refusal(failure, status == 429 or status >= 500, response.headers.get("retry-after", ""))

    async def _read_body(self, response: httpx.Response) -> str:
        """The beginning of a refusal's body, or what of it comes: the status alone says enough."""
        import httpx

        body = bytearray()
        with suppress(TimeoutError, httpx.RequestError):
            async with asyncio.timeout(self._timeouts.linger):
                async for data in response.aiter_bytes():
                    body += data[: _MAX_REFUSAL_BYTES - len(body)]
                    if len(body) == _MAX_REFUSAL_BYTES:
                        break
        return body.decode("utf-8", "replace").strip()


class _Refusal(NamedTuple):
    """Why there is no answer. ``passes`` says that asking again may help."""

    failure: ModelFailed
    passes: bool = False
    retry_after: str = ""
    cause: Exception | None = None


def _open_client() -> httpx.AsyncClient:
    import httpx

    # As many connections as there are agents that wait for an answer.
    return httpx.AsyncClient(limits=httpx.Limits(max_connections=None, max_keepalive_connections=20))


def _build_endpoint(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        # What it says may quote a password in the address.
        raise ModelFailed(rule="address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ModelFailed(rule="address")
    path = parts.path.rstrip("/") + "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _headers(api_key: str | None, given: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
    }
    if api_key:
        headers["authorization"] = f"Bearer {api_key.strip()}"
    headers |= {name.lower(): value.strip() for name, value in given.items()}
    if not all(_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(headers[name]) for name in headers):
        raise ModelFailed(rule="credentials")
    return headers


def _secrets(headers: Mapping[str, str], base_url: str) -> tuple[str, ...]:
    parts = urlsplit(base_url)
    named = [*headers.items(), *parse_qsl(parts.query)]
    # Of "Bearer KEY" the key.
    found = [value.rpartition(" ")[2] for name, value in named if _SECRET_NAME.search(name.lower())]
    return tuple(each for each in [*found, parts.password] if each)
