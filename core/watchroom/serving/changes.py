"""Tells a client that the list of tools is another: the tools of buffers come and go with their state.

Older clients are told as it happens, newer ones where they listen (`subscriptions/listen`). Nothing is told
over HTTP here, where each request stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged


class ToolChanges:
    """What one client last heard of its tools."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus)
        self._known: tuple[str, ...] | None = None

    def listed(self, names: Sequence[str]) -> None:
        """The client was given the list with these names."""
        self._known = tuple(names)

    async def look(self, context: ServerRequestContext[Any, Any], names: Sequence[str]) -> None:
        """Tell the client if it was given a list of other names; once, until they change again."""
        if self._known is None or self._known == tuple(names):
            return
        self._known = tuple(names)
        await context.session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a client that listens. It is told of tools alone, which the first answer says."""
        wanted = types.SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
        return await self._streams(context, params.model_copy(update={"notifications": wanted}))
