"""The protocol's own client, as agents from elsewhere use it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from service_process import allow_service
from watchroom import Toolbox, Workspace
from watchroom.serving.approvals import APPROVAL_SECONDS, CallApprovals
from watchroom.serving.call_tasks import TASK_SECONDS, CallTasks
from watchroom.serving.http import LOOPBACK, PATH, BackgroundServer, http_app
from watchroom.serving.notifications import Context
from watchroom.serving.resources import WorkspaceResources
from watchroom.serving.server import make_server


def within(
    workspace: Workspace,
    toolbox: Toolbox,
    *,
    approval_tools: Sequence[str] = (),
    seconds: float = APPROVAL_SECONDS,
    task_seconds: float = TASK_SECONDS,
    client: Mapping[str, Any] | None = None,
    **given: Any,
) -> Client:
    """A client in this process, of a server for one agent."""
    resources = WorkspaceResources(workspace.journal, toolbox.language)
    approvals = CallApprovals(workspace, approval_tools, seconds)

    async def toolbox_of(context: Context) -> Toolbox:
        return toolbox

    tasks = CallTasks(workspace, approvals, task_seconds)
    return Client(make_server(toolbox_of, resources, approvals, tasks=tasks, **given), **(client or {}))


def over_stdio(root: Path, agent: str, *more: str, client: Mapping[str, Any] | None = None) -> Client:
    """A client of a server that it starts, as most do."""
    allow_service()
    command = ["-m", "watchroom_cli.main", "mcp", str(root), "--agent", agent, *more]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    return Client(server, **(client or {}))


@asynccontextmanager
async def over_http(url: str, token: str, client: Mapping[str, Any] | None = None) -> AsyncIterator[Client]:
    """A client that comes in over the network with a token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), **(client or {})) as connected,
    ):
        yield connected


@contextmanager
def serving(workspace: Workspace, **given: Any) -> Iterator[str]:
    """Where the workspace is served over HTTP, on a free port."""
    listener = socket.create_server((LOOPBACK, 0))
    server = BackgroundServer(http_app(workspace, **given))
    thread = Thread(target=asyncio.run, args=(server.serve([listener]),))
    thread.start()
    try:
        while not server.started:
            thread.join(0.005)
            assert thread.is_alive(), "the server ended"
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}{PATH}"
    finally:
        server.should_exit = True
        thread.join()


async def called(client: Client, tool: str, **arguments: object) -> Mapping[str, Any]:
    """The result of a call that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    found: Mapping[str, Any] = result.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: object) -> Mapping[str, Any]:
    """The result of a call that must be refused, as an error that a model can read."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    found: Mapping[str, Any] = result.structured_content
    assert found["success"] is False
    assert found["message"] in result.content[0].text  # type: ignore[union-attr]
    return found
