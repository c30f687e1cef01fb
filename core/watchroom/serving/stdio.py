"""The server on standard input and output, for one agent: as most clients start it."""

from __future__ import annotations

from collections.abc import Collection

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from watchroom.serving.asking import Asking
from watchroom.serving.changes import ToolChanges
from watchroom.serving.place import Place
from watchroom.serving.resources import Resources
from watchroom.serving.server import make_server
from watchroom.serving.unreadable import AnsweredReads


async def serve_stdio(
    place: Place, agent: str, *, toolsets: Collection[str] | None = None, asks: Collection[str] = ()
) -> None:
    """Serve ``agent`` until the client closes its end; people approve of the calls of the tools ``asks``.
    Raises `UnknownAgent`."""
    toolbox = place.tools(agent)
    resources = Resources(place.journal, toolbox.language)
    server = make_server(
        lambda context: toolbox,
        resources,
        Asking(place, asks),
        toolsets=toolsets,
        instructions=toolbox.system_prompt(toolsets=toolsets),
        changes=ToolChanges(),
    )
    async with stdio_server() as (read, write):
        tells = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(AnsweredReads(read, write, toolbox.texts), write, tells)
