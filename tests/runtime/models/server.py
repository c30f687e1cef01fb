"""A small HTTP server on the loopback that does what it is told, one request after another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Request(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """One request, and the means to answer it."""

    def __init__(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        self.request = request
        self.connection = connection
        self._reader = reader
        self._writer = writer

    async def begin(
        self,
        status: int = 200,
        content_type: str | None = "text/event-stream",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """The head of a body that comes in chunks."""
        lines = [f"HTTP/1.1 {status} Status", "transfer-encoding: chunked"]
        lines += [f"content-type: {content_type}"] if content_type else []
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, *pieces: bytes) -> None:
        """Each piece as a chunk of its own, which is how the client comes to see it."""
        await self.raw(b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece))

    async def finish(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def answer(self, body: bytes, *, status: int = 200, **head: Any) -> None:
        await self.begin(status, **head)
        await self.send(body)
        await self.finish()

    async def gone(self) -> None:
        """Until the client has closed its side."""
        # A client that gives up may reset the connection: it is closed then, too.
        with suppress(ConnectionError):
            while await self._reader.read(1 << 16):
                pass

    def cut(self) -> None:
        """Close the connection, whatever was promised."""
        self._writer.close()


Step = Callable[[Exchange], Awaitable[None]]


@dataclass
class Server:
    """Answers the n-th request with the n-th step, and those after the last with the last."""

    steps: Sequence[Step]
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        try:
            # Tests have clients give up in the middle of an answer; what comes of it, they look at there.
            with suppress(ConnectionError):
                while (request := await _read(reader)) is not None:
                    self.requests.append(request)
                    step = self.steps[min(len(self.requests), len(self.steps)) - 1]
                    await step(Exchange(request, reader, writer, connection))
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


@asynccontextmanager
async def serving(*steps: Step) -> AsyncIterator[Server]:
    server = Server(steps)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(server.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        remaining = list(tasks)
        for task in remaining:
            task.cancel()
        failures = await asyncio.gather(*remaining, return_exceptions=True)
        await listening.wait_closed()
        for failure in failures:
            if isinstance(failure, Exception):
                raise failure


def event(data: object) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, object]:
    """One event's object, as OpenAI writes it."""
    choice = {"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


DONE = b"data: [DONE]\n\n"


def said(*words: str, finish_reason: str | None = "stop") -> bytes:
    """A whole stream that says ``words``."""
    events = [event(delta(role="assistant", content=""))]
    events += [event(delta(content=word)) for word in words]
    return b"".join([*events, event(delta(finish_reason=finish_reason)), DONE])


def answering(body: bytes, **head: Any) -> Step:
    """The step that answers with ``body`` and ends it properly."""

    async def step(exchange: Exchange) -> None:
        await exchange.answer(body, **head)

    return step
