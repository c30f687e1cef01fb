"""Tells a client that its list of tools has changed: the tools of buffers come and go with their state.

Older clients are told as it happens, newer ones where they listen (`subscriptions/listen`). Nothing is told
over HTTP here, where each request stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged


class ToolListNotifier:
    """Knows which tools one client was last told of."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus)
        self._known: Sequence[str] | None = None

    def record_listed(self, names: Sequence[str]) -> None:
        """Remember that the client was given the list of the tools ``names``."""
        self._known = names

    async def notify_if_changed(self, context: ServerRequestContext[Any, Any], names: Sequence[str]) -> None:
        """Tell the client of ``context`` if its tools are ``names`` by now and it was given another list;
        once, until they change again."""
        if self._known is None or self._known == names:
            return
        self._known = names
        await context.session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a client that listens, with the request ``params`` in ``context``, until it stops. It is told
        of tools alone, which the first message says."""
        wanted = types.SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
        return await self._streams(context, params.model_copy(update={"notifications": wanted}))
