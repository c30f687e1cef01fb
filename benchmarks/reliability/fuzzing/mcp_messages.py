"""The Model Context Protocol: lines on standard input, and bodies of HTTP requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, Self

import httpx
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from watchroom.features.calls.toolbox import Toolbox
from watchroom.model import Json
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.http import LOOPBACK, PATH, http_app
from watchroom.serving.malformed_messages import MalformedMessageFilter
from watchroom.serving.notifications import ChangeNotifier, Context
from watchroom.serving.resources import WorkspaceResources
from watchroom.serving.server import make_server

from reliability.fuzzing.async_target import AsyncTarget
from reliability.fuzzing.mutation import (
    HOSTILE,
    NUMBERS,
    mutated,
    mutated_json,
    some_json,
    some_text,
    to_bytes,
)
from reliability.fuzzing.oracle import require

_METHODS: Final = (
    *("tools/call", "tools/call", "tools/call", "tools/list", "resources/read", "resources/list", "ping"),
    "x",
    *("resources/templates/list", "prompts/list", "completion/complete", "logging/setLevel", "initialize"),
    *("notifications/initialized", "notifications/cancelled", "subscriptions/listen", "server/discover"),
    *("resources/subscribe", "resources/unsubscribe", "tasks/get", "tasks/update", "tasks/cancel"),
)
_CALL: Final[Json] = {"name": "collab_read", "arguments": {"filepath": "plan.md"}}
_LEAVES: Final[Sequence[Json]] = (
    *("2.0", "1.0", *_METHODS, "collab_read", "collab_write", "collab_list", "check_my_handoffs", "plan.md"),
    *("watchroom://collab/plan.md", "watchroom://board/global", "watchroom://x/%2e%2e", "watchroom://"),
    "file:///",
    *("2025-06-18", "2026-01-01", "progressToken", "_meta", "traceparent", "\ufffd", *HOSTILE, *NUMBERS),
    {"filepath": "plan.md"},
    _CALL,
    {},
    [],
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
)
_TOKENS: Final = (
    b'{"',
    b'":',
    b"[",
    b"]",
    b"}",
    b",",
    b"\\ud800",
    b"null",
    b"9" * 2000,
    b"[" * 3000,
    b'{"a":' * 2000,
)
_BEGIN: Final[Json] = {
    "jsonrpc": "2.0",
    "id": "begin",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "fuzz", "version": "1"},
    },
}


def _message(chance: Random) -> Json:
    params: Json = {}
    method = chance.choice(_METHODS)
    if method == "tools/call":
        name = chance.choice(("collab_read", "collab_write", "collab_list", "check_my_handoffs", "x"))
        arguments: Json = {"filepath": "plan.md", "content": some_text(chance), "message": "m"}
        if name != "collab_write" or chance.random() < 0.3:
            arguments = chance.choice((arguments, {"filepath": "plan.md"}, {}, some_json(chance, _LEAVES)))
        params = {"name": name, "arguments": arguments}
    elif method.startswith("tasks/"):
        params = {"taskId": chance.choice(("a" * 32, some_text(chance))), "inputResponses": {}}
    elif method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        params = {
            "uri": chance.choice(("watchroom://collab/plan.md", "watchroom://board/", some_text(chance)))
        }
    elif chance.random() < 0.5:
        params = some_json(chance, _LEAVES)
    message: dict[str, Json] = {"jsonrpc": "2.0", "method": method, "params": params}
    if chance.random() < 0.9:
        message["id"] = chance.choice((1, "a", chance.choice(NUMBERS), some_text(chance)))
    return message if chance.random() < 0.95 else [message, message]


class _McpTarget(AsyncTarget):
    """Messages of the protocol."""

    def generate(self, chance: Random) -> bytes:
        return to_bytes(_message(chance))

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        if chance.random() < 0.6:
            with suppress(ValueError, RecursionError):
                return to_bytes(mutated_json(json.loads(data), chance, _LEAVES))
        return mutated(data, chance, self.size, _TOKENS, other)


class _Lines:
    """Standard input and output of a server, as its transport reads and writes them."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[str | None] = asyncio.Queue()
        self.outgoing: asyncio.Queue[str] = asyncio.Queue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self.incoming.get()
        if line is None:
            raise StopAsyncIteration
        return line

    async def write(self, text: str) -> None:
        self.outgoing.put_nowait(text)

    async def flush(self) -> None:
        """Nothing is buffered."""


class McpLines(_McpTarget):
    """Checks that each request on standard input is answered, and that the next line is read."""

    name = "mcp-stdio"

    async def begin(self) -> None:
        self._lines = _Lines()
        self._task = asyncio.create_task(self._serve())
        self._lines.incoming.put_nowait(json.dumps(_BEGIN) + "\n")
        await self._lines.outgoing.get()
        self._lines.incoming.put_nowait('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    async def _serve(self) -> None:
        toolbox = self.workspace.tools("alice")

        async def toolbox_of(context: Context) -> Toolbox:
            return toolbox

        resources = WorkspaceResources(self.workspace.journal, "en")
        server = make_server(
            toolbox_of,
            resources,
            CallApprovals(self.workspace, ()),
            notifier=ChangeNotifier(self.workspace.background, resources, has_one_client=True),
        )
        async with stdio_server(self._lines, self._lines) as (reads, writes):  # type: ignore[arg-type]
            options = server.create_initialization_options(NotificationOptions(tools_changed=True))
            await server.run(MalformedMessageFilter(reads, writes, toolbox.texts), writes, options)

    async def end(self) -> None:
        self._lines.incoming.put_nowait(None)
        await asyncio.wait([self._task], timeout=5)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def send(self, data: bytes) -> Hashable:
        require(not self._task.done(), "the server has ended")
        self._number += 1
        ping = f"ping-{self._number}"
        # Decoded as by the transport.
        line = data.decode("utf-8", "replace").replace("\n", " ")
        self._lines.incoming.put_nowait(line + "\n")
        self._lines.incoming.put_nowait(json.dumps({"jsonrpc": "2.0", "id": ping, "method": "ping"}) + "\n")
        wanted = {ping, *_ids(line)}
        kinds: list[Hashable] = []
        while wanted:
            answer = json.loads(await self._lines.outgoing.get())
            require(answer["jsonrpc"] == "2.0", answer)
            wanted -= {given for given in wanted if _same(given, answer.get("id"))}
            if answer.get("id") != ping:
                kinds.append(_kind(answer))
        return tuple(kinds[:3])


def _ids(line: str) -> Iterator[Json]:
    """Yield the id of the answer, if ``line`` is a request that needs one."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict) and found.get("jsonrpc") == "2.0" and isinstance(found.get("method"), str):
        given = found.get("id")
        # A stream stays open until it is cancelled.
        if isinstance(given, str | int) and not isinstance(given, bool) and found["method"] not in _STREAMS:
            yield given


_STREAMS: Final = ("subscriptions/listen",)


def _same(given: Json, answered: Json) -> bool:
    if isinstance(given, str):
        # A lone surrogate is answered with its replacement, or without an id.
        return answered in (given, None) or (isinstance(answered, str) and not given.isprintable())
    return answered in (given, None)


def _kind(answer: Any) -> Hashable:
    """Return the kind of an answer. An internal error is a finding."""
    if "error" in answer:
        error = answer["error"]
        require(error["code"] != -32603, ("an internal error", error))
        return error["code"], str(error["message"])[:30]
    result = answer.get("result", {})
    if isinstance(result, dict) and "isError" in result:
        told = result.get("structuredContent") or {}
        require(told.get("error") != "internal_error", told)
        return result["isError"], str(told.get("error")), tuple(told)[:6]
    return tuple(result)[:6] if isinstance(result, dict) else type(result).__name__


class McpBodies(_McpTarget):
    """Checks that each HTTP request is answered without a server error."""

    name = "mcp-http"

    async def begin(self) -> None:
        self._stop, started = asyncio.Event(), asyncio.Event()
        token = self.workspace.access.create("human:eve", "alice")
        app = http_app(self.workspace)

        async def serve() -> None:
            async with app.router.lifespan_context(app):
                started.set()
                await self._stop.wait()

        self._task = asyncio.create_task(serve())
        await started.wait()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url=f"http://{LOOPBACK}:8000"
        )
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }

    async def end(self) -> None:
        await self._client.aclose()
        self._stop.set()
        await self._task

    async def send(self, data: bytes) -> Hashable:
        answer = await self._client.post(PATH, content=data, headers=self._headers)
        require(answer.status_code < 500, (answer.status_code, answer.text[:300]))
        if not answer.content:
            return answer.status_code
        if answer.headers["content-type"].startswith("application/json"):
            told = answer.json()
            return answer.status_code, _kind(told) if "jsonrpc" in told else tuple(told)
        return answer.status_code, answer.text[:30]
