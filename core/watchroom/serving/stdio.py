"""The server on standard input and output, for one agent: as most clients start it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST

from watchroom.errors import WatchroomError
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.call_messages import CallMessages
from watchroom.serving.malformed_messages import MalformedMessageFilter
from watchroom.serving.resources import WorkspaceResources
from watchroom.serving.server import Context, make_server
from watchroom.serving.tool_list_changes import ToolListNotifier
from watchroom.toolbox import Toolbox
from watchroom.workspace import Workspace


async def serve_stdio(
    workspace: Workspace,
    agent: str,
    *,
    toolsets: Collection[str] | None = None,
    approval_tools: Collection[str] = (),
    on_request: Callable[[], None] = lambda: None,
    agent_of_call: Callable[[], Awaitable[str]] | None = None,
) -> None:
    """Serve ``agent`` in ``workspace`` until the client closes its end, with the tools of ``toolsets``
    (default: all); people approve of the calls of ``approval_tools``. ``on_request`` is called with each
    request that concerns tools. ``agent_of_call`` returns the agent as which a tool is called (default:
    ``agent``). Raises `UnknownAgent`."""
    toolbox = workspace.tools(agent)
    toolboxes = {toolbox.actor: toolbox}

    async def toolbox_of(context: Context) -> Toolbox:
        on_request()
        if agent_of_call is None or context.method == "tools/list":
            return toolbox
        try:
            caller = await agent_of_call()
            return toolboxes.get(caller) or toolboxes.setdefault(caller, workspace.tools(caller))
        except WatchroomError as error:
            said = f"{error.message(toolbox.language)} {error.suggestion(toolbox.language)}"
            raise MCPError(INVALID_REQUEST, said) from error

    server = make_server(
        toolbox_of,
        WorkspaceResources(workspace.journal, toolbox.language),
        CallApprovals(workspace, approval_tools),
        messages=CallMessages(workspace),
        toolsets=toolsets,
        instructions=toolbox.system_prompt(toolsets=toolsets),
        notifier=ToolListNotifier(),
    )
    async with stdio_server() as (reads, writes):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(MalformedMessageFilter(reads, writes, toolbox.texts), writes, options)
