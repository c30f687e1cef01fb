"""Serves the Model Context Protocol to clients: through connected relays, and over HTTP."""

from __future__ import annotations

import asyncio
import socket

from watchroom.agents.clients.attendant import Attendant
from watchroom.agents.clients.registry import HOOKED_CLIENTS
from watchroom.features.calls.tool_registry import DEFAULT_SERVER_TOOLSETS
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.serving.service.hooks import MAX_AGENTS
from watchroom.serving.service.http import BadRequest, Connection, ServiceRequest
from watchroom.serving.service.workspaces import ServedWorkspace

PROTOCOL = "mcp"
_HOLD = "hold"
_MAX_PORT = 65_535


async def serve_relay(served: ServedWorkspace, request: ServiceRequest, connection: Connection) -> None:
    """Serve the client whose relay sent ``request``, until the relay closes the connection.

    Raise `BadRequest`, OSError, `WatchroomError`.
    """
    agents, client = request.all("agent"), request.get("client")
    is_known = client in HOOKED_CLIENTS
    if len(agents) > MAX_AGENTS or not (is_known if client else agents):
        raise BadRequest(409, "no client or agent")
    # The protocol's library loads slowly.
    from watchroom.serving.stdio import serve_stdio

    attendant: Attendant | None = None
    if client:
        is_strict = "1" in request.all("strict")
        attendant = await served.attend(request.peer.pid, client, agents, is_strict=is_strict)
        if attendant is None and len(agents) != 1:
            # Another client may work as the first agent.
            raise BadRequest(409, "the client is not known")
    agent = agents[0] if attendant is None else await attendant.reserve_agent()
    await run_in_thread(served.workspace.registry.agent, agent)
    await connection.upgrade(PROTOCOL)
    await serve_stdio(
        served.workspace,
        agent,
        connection.reader,
        connection.writer,
        toolsets=_toolsets(request),
        approval_tools=request.all("ask"),
        on_request=(lambda: None) if attendant is None else attendant.notice_activity,
        agent_of_call=None if attendant is None else attendant.claim_agent,
    )


async def serve_http(served: ServedWorkspace, request: ServiceRequest, connection: Connection) -> None:
    """Serve the port in ``request`` on the loopback interface, until the client closes the connection.

    Raise `BadRequest`, ConnectionError.
    """
    from watchroom.serving.http import LOOPBACK, BackgroundServer, http_app

    port = request.get("port")
    try:
        if not port.isdecimal() or not 0 < int(port[:6]) <= _MAX_PORT:
            raise BadRequest(409, "no port")
        listener = socket.create_server((LOOPBACK, int(port)))
    except OSError as error:
        raise BadRequest(409, str(error)) from error
    with listener:
        app = http_app(
            served.workspace,
            language=served.workspace.config.language,
            toolsets=_toolsets(request),
            approval_tools=request.all("ask"),
        )
        await connection.upgrade(_HOLD)
        server = BackgroundServer(app)
        serving = asyncio.ensure_future(server.serve([listener]))
        closing = asyncio.ensure_future(connection.reader.read(1))
        try:
            await asyncio.wait([serving, closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            server.should_exit = True
            await serving


async def hold(served: ServedWorkspace, request: ServiceRequest, connection: Connection) -> None:
    """Keep the workspace open until the client closes the connection. Raise ConnectionError."""
    await connection.upgrade(_HOLD)
    await connection.reader.read(1)


def _toolsets(request: ServiceRequest) -> tuple[str, ...]:
    given = request.get("toolsets")
    return tuple(given.split(",")) if given else DEFAULT_SERVER_TOOLSETS
