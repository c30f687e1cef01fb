"""A client for servers with the chat completions API of OpenAI, hosted or local."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from watchroom.errors import ModelFailed, ModelLimited
from watchroom.features.sessions.limits import limit_of_response
from watchroom.features.sessions.runtime.models.chat_completions import (
    AnswerReader,
    extract_message,
    request_body,
    sanitize_message,
)
from watchroom.features.sessions.runtime.models.protocol import ModelChunk, ModelPayload
from watchroom.features.sessions.runtime.models.retry_policy import RetryPolicy

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES: Final = 128 * 1024 * 1024
"""Maximum bytes of an answer's body. A streamed answer takes about 300 bytes per word."""

_MAX_REFUSAL_BYTES: Final = 64 * 1024
_SECRET_NAME: Final = re.compile("auth|cookie|key|secret|token")
_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[ -~]*")


class Timeouts(NamedTuple):
    """Timeouts in seconds."""

    connect: float = 10.0
    first: float = 300.0
    """The wait for the first byte of an answer. A local model can read a long conversation for minutes."""
    stall: float = 60.0
    """The wait for each further byte, including keep-alives."""
    linger: float = 2.0
    """The wait for the usage and the end of the stream, after a complete answer."""


_TIMEOUTS: Final = Timeouts()
_RETRY_POLICY: Final = RetryPolicy()


class OpenAICompatible:
    """A model of a server with the chat completions API of OpenAI. Errors are `ModelFailed`.

    - ``base_url``: the address to which ``/chat/completions`` is appended.
    - ``api_key``, ``headers``: sent with each request. They never appear in an error.
    - ``max_answer_bytes``: the maximum size of an answer's body, default 128 MiB.
    - ``include_usage``: whether to ask for token counts, which some servers refuse. Default True.
    - ``client``: the HTTP client. By default, a client is opened on first use and closed by `aclose`.

    Connections are shared by all requests. Use one instance on one event loop.

    Example::

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
        """Close the connections. Answers that are arriving fail; a later request opens new connections."""
        client, self._own = self._own, None
        if client is not None:
            await client.aclose()

    async def __call__(self, payload: ModelPayload) -> AsyncGenerator[ModelChunk, None]:
        """Yield the answer to ``payload``. Closing the generator closes its connection."""
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
        """Return the next bytes; None at the end. After a complete answer, an error counts as the end."""
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
        """Read the stream to its end, so that the connection can be reused."""
        import httpx

        with suppress(TimeoutError, httpx.RequestError):
            async with asyncio.timeout(self._timeouts.linger):
                async for _ in pieces:
                    pass

    async def _response(self, body: bytes) -> httpx.Response:
        """Send the request, with retries, and return the response."""
        try:
            client = await self._client()
        except (ImportError, ValueError) as error:
            # The proxy in the environment cannot be used.
            problem = sanitize_message(str(error), self._secrets)
            raise ModelFailed(rule="unreachable", problem=problem) from error
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
                # Loading httpx and certificates takes 0.1 seconds, which would freeze the dashboard.
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
        retry_after = response.headers.get("retry-after", "")
        now = self._patience.now()
        limit = limit_of_response(status, problem, retry_after, int(now * 1e9))
        if limit is None:
            failure = ModelFailed(rule="refused", status=status, problem=problem)
            return _Refusal(failure, status >= 500, retry_after)
        limited = ModelLimited(rule="refused", status=status, problem=problem)
        limited.resets = limit.resets
        # A retry before a later reset would fail, too.
        is_soon = limit.resets is None or limit.resets / 1e9 - now <= self._patience.longest
        return _Refusal(limited, is_soon, retry_after)

    async def _read_body(self, response: httpx.Response) -> str:
        """Return the beginning of the body of an error. A slow or broken body is cut off."""
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
    """The reason why there is no answer. ``passes``: whether a retry may succeed."""

    failure: ModelFailed
    passes: bool = False
    retry_after: str = ""
    cause: Exception | None = None


def _open_client() -> httpx.AsyncClient:
    import httpx

    # Each agent that waits for an answer needs a connection.
    return httpx.AsyncClient(limits=httpx.Limits(max_connections=None, max_keepalive_connections=20))


def _build_endpoint(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        # The message of the exception can quote a password in the address.
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
    # The secret in "Bearer KEY" is the last word.
    found = [value.rpartition(" ")[2] for name, value in named if _SECRET_NAME.search(name.lower())]
    return tuple(each for each in [*found, parts.password] if each)
