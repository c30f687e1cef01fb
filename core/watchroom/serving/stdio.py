"""The MCP server for one agent, over lines, as on standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Self, cast

from anyio import AsyncFile
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST

from watchroom.errors import WatchroomError
from watchroom.features.calls.toolbox import Toolbox
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.call_tasks import CallTasks
from watchroom.serving.malformed_messages import MalformedMessageFilter
from watchroom.serving.notifications import ChangeNotifier, Context
from watchroom.serving.resources import WorkspaceResources
from watchroom.serving.server import make_server, take_messages
from watchroom.workspace import Workspace


async def serve_stdio(
    workspace: Workspace,
    agent: str,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    toolsets: Collection[str] | None = None,
    approval_tools: Collection[str] = (),
    on_request: Callable[[], None] = lambda: None,
    agent_of_call: Callable[[], Awaitable[str]] | None = None,
) -> None:
    """Serve ``agent`` in ``workspace`` until the client closes the connection.

    - ``reader``, ``writer``: the lines from the client, and to the client.
    - ``toolsets``: offer only these sets of tools, default all.
    - ``approval_tools``: people approve the calls of these tools.
    - ``on_request``: called with each request to call a tool.
    - ``agent_of_call``: returns the agent that makes a call, default ``agent``.

    Raise `UnknownAgent`.
    """
    toolbox = workspace.tools(agent)
    toolboxes = {toolbox.actor: toolbox}

    async def toolbox_of(context: Context) -> Toolbox:
        if context.method == "tools/call":
            on_request()
        if agent_of_call is None or context.method == "tools/list":
            return toolbox
        try:
            caller = await agent_of_call()
            return toolboxes.get(caller) or toolboxes.setdefault(caller, workspace.tools(caller))
        except WatchroomError as error:
            message = f"{error.message(toolbox.language)} {error.suggestion(toolbox.language)}"
            raise MCPError(INVALID_REQUEST, message) from error

    resources = WorkspaceResources(workspace.journal, toolbox.language)
    notifier = ChangeNotifier(workspace.background, resources, has_one_client=True)
    approvals = CallApprovals(workspace, approval_tools)
    server = make_server(
        toolbox_of,
        resources,
        approvals,
        take_messages=partial(take_messages, workspace),
        toolsets=toolsets,
        instructions=toolbox.system_prompt(toolsets=toolsets),
        notifier=notifier,
        tasks=CallTasks(workspace, approvals),
    )
    lines = _Lines(reader, writer)
    async with stdio_server(cast(AsyncFile[str], lines), cast(AsyncFile[str], lines)) as (reads, writes):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        try:
            await server.run(MalformedMessageFilter(reads, writes, toolbox.texts), writes, options)
        finally:
            notifier.close()


class _Lines:
    """The lines of ``reader`` and ``writer``, with the file interface of the MCP library."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            # The client has ended, or its line exceeds the reader's limit.
            line = b""
        if not line:
            raise StopAsyncIteration
        return line.decode(errors="replace")

    async def write(self, text: str) -> None:
        """Write ``text``. If the client has ended, the text is dropped."""
        self._writer.write(text.encode())

    async def flush(self) -> None:
        """Wait until the client reads."""
        with suppress(ConnectionError):
            await self._writer.drain()
