"""Requests to the socket of the resident service, by any process of its user."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Hashable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from watchroom.agents.clients import client_program
from watchroom.model import Json
from watchroom.platform import detect_platform
from watchroom.serving.service.service import Service
from watchroom_cli.plain.status_text import describe_status

from reliability.fuzzing.async_target import AsyncTarget
from reliability.fuzzing.mutation import HOSTILE, NUMBERS, mutated, mutated_json, some_text, to_bytes
from reliability.fuzzing.oracle import require

_PATHS: Final = ("/hook", "/hook", "/hook", "/mcp", "/use", "/status", "/line", "/http", "/nowhere", "/")
_METHODS: Final = ("POST", "POST", "GET", "PUT", "OPTIONS")
_FIELDS: Final = (
    *(("agent", "alice"), ("agent", "bob"), ("agent", "nobody"), ("client", "claude"), ("client", "codex")),
    *(("client", "x"), ("strict", "1"), ("form", "status"), ("age", "0.5"), ("age", "nan"), ("age", "-1e9")),
    *(("entry", "cli"), ("toolsets", "collab"), ("toolsets", "x,y"), ("ask", "collab_write"), ("port", "0")),
    *(("port", "99999999"), ("version", "0.0.1"), ("protocol", "0"), ("root", "relative"), ("root", "/proc")),
    *(("place", "relative"), ("place", "/proc"), ("place", "/" + "x" * 5000), ("language", "zh")),
)
_EVENT: Final[dict[str, Json]] = {
    "hook_event_name": "PreToolUse",
    "session_id": "s1",
    "tool_name": "Read",
    "tool_use_id": "t1",
    "tool_input": {"file_path": "notes.md"},
    "cwd": "/",
}
_NAMES: Final = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Stop")
_LEAVES: Final[Sequence[Json]] = (*_NAMES, "s1", "s2", "\ud800", *HOSTILE, *NUMBERS, {}, [])
_TOKENS: Final = (
    *(
        b"\r\n",
        b"\r\n\r\n",
        b"\n\n",
        b": ",
        b"HTTP/1.1",
        b"HTTP/0.9",
        b"Content-Length: ",
        b"Expect: 100-continue",
    ),
    *(
        b"Transfer-Encoding: chunked",
        b"Upgrade: mcp",
        b"Connection: close",
        b"0\r\n\r\n",
        b"ffffffff\r\n",
        b"%00",
    ),
    *(b"&root=", b"&" * 300, b"?", b"#", b"//x", b"[::", b"%ff%fe", b"\0", b"\xff", b"9" * 5000),
)
_STATUSES: Final = frozenset(
    {b"101", b"200", b"400", b"403", b"404", b"405", b"409", b"413", b"426", b"431", b"501", b"503"}
)
_UPGRADE: Final = "Connection: Upgrade\r\nUpgrade: mcp\r\n"
_MESSAGES: Final[Sequence[Json]] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "fuzz", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "collab_list", "arguments": {}}},
)
_END: Final = b"\r\n\r\n"
_NEWER: Final = b"503"
_SECONDS: Final = 10.0
_UPGRADE_SECONDS: Final = 0.3


class ServiceRequests(AsyncTarget):
    """Checks that each request is answered or refused, and that none ends the service or affects the next."""

    name = "service"
    period = 20_000

    async def begin(self) -> None:
        # Paths of sockets must be short.
        self._folder = tempfile.mkdtemp(prefix="wr", dir="/tmp")
        os.environ["XDG_RUNTIME_DIR"] = self._folder
        serving = asyncio.Event()
        self._service = Service(
            detect_platform(), client_program.VERSION, lambda _: None, describe_status, serving.set
        )
        self._running = asyncio.ensure_future(self._service.run())
        await serving.wait()

    async def end(self) -> None:
        self._service.stop()
        require(await self._running, "another service ran")
        shutil.rmtree(self._folder)

    def generate(self, chance: Random) -> bytes:
        fields = [*chance.sample(_FIELDS, chance.randint(0, 5))]
        if chance.random() < 0.8:
            fields += [
                ("root", self.workspace.root),
                ("place", self.workspace.root),
                ("agent", "alice"),
                ("client", "claude"),
            ]
        if chance.random() < 0.1:
            fields.append((some_text(chance), some_text(chance)))
        body = to_bytes(mutated_json({**_EVENT, "hook_event_name": chance.choice(_NAMES)}, chance, _LEAVES))
        safe = [(client_program.quote(name), value) for name, value in fields]
        if chance.random() < 0.2:
            lines = b"\n".join(to_bytes(mutated_json(each, chance, _LEAVES)) for each in _MESSAGES) + b"\n"
            return client_program.request("GET", chance.choice(("/mcp", "/use")), safe, more=_UPGRADE) + lines
        return client_program.request(chance.choice(_METHODS), chance.choice(_PATHS), safe, body)

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        if chance.random() < 0.4:
            head, _, body = data.partition(b"\r\n\r\n")
            with suppress(ValueError, RecursionError):
                changed = to_bytes(mutated_json(json.loads(body), chance, _LEAVES))
                lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
                return b"\r\n".join([*lines, b"Content-Length: %d" % len(changed), b"", changed])
        return mutated(data, chance, self.size, _TOKENS, other)

    async def send(self, data: bytes) -> Hashable:
        reader, writer = await asyncio.open_unix_connection(client_program.socket_path())
        head, end, lines = data.partition(_END)
        is_relay = head.endswith(_UPGRADE.strip().encode())
        said = b""
        try:
            # The service may refuse before it has read everything.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                writer.write(head + end if is_relay else data)
                if is_relay:
                    # A changed head may announce a body.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_UPGRADE_SECONDS):
                            said = await reader.readuntil(_END)
                    writer.write(lines)
                writer.write_eof()
                async with asyncio.timeout(_SECONDS):
                    while piece := await reader.read(1 << 16):
                        said += piece
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        status = said[9:12]
        if status == _NEWER:
            # The client has a newer version, so the service ends.
            await self.end()
            await self.begin()
        require(not self._running.done(), "the service has ended")
        if not said:
            return None
        require(said.startswith(b"HTTP/1.1 ") and status in _STATUSES, said[:200])
        return status, said.partition(b"\r\n\r\n")[2][:30]
