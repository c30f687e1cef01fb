"""Notifications for clients: of new versions of resources, and of changes to their list of tools.

Newer clients get them on their own streams (`subscriptions/listen`). Older clients over stdio subscribe to
one resource at a time. A notification says only that something changed, so several changes can be one
notification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread
from watchroom.kernel.background import EVERY_ROW, Background
from watchroom.model import Row
from watchroom.serving.resources import WorkspaceResources, parse_address

Context: TypeAlias = ServerRequestContext[Any, Any]
IsReadable: TypeAlias = Callable[[str], bool]
"""Returns whether the client can read the resource at an address. Called on a background thread."""

MAX_RESOURCES: Final = 500
"""Maximum number of resources of a subscription. The client is notified of the first ones only."""
MAX_STREAMS: Final = 16
"""Maximum number of an agent's open streams on a server."""
_MAX_EVENTS: Final = 1000
"""Maximum number of notifications that wait for a client to read. Then its stream ends."""


class ResourceWatch:
    """Calls ``on_event`` on the running event loop for new versions of resources, until `close`.

    - ``background``: delivers the rows.
    - ``is_readable``: checked again before each event, because permissions change.
    - ``has_list``: whether to report changes to the list of ``resources``.
    - ``is_authorized``: returns whether the client may still connect. If not, ``on_end`` is called instead.
    """

    def __init__(
        self,
        background: Background,
        resources: WorkspaceResources,
        is_readable: IsReadable,
        on_event: Callable[[ServerEvent], None],
        *,
        has_list: bool = False,
        is_authorized: Callable[[], bool] = lambda: True,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._background = background
        self._resources = resources
        self._is_readable = is_readable
        self._on_event = on_event
        self._has_list = has_list
        self._is_authorized = is_authorized
        self._on_end = on_end
        self._uris: dict[tuple[str, str], frozenset[str]] = {}
        """The addresses as the client wrote them, by zone and path."""
        self._pending: dict[ServerEvent, None] = {}
        self._unsubscribe: Callable[[], None] | None = None

    def __len__(self) -> int:
        return sum(len(each) for each in self._uris.values())

    async def start(self) -> None:
        """Report the changes from now on. Raise `JournalError`."""
        if self._unsubscribe is None:
            # Before the first wait, so that `close` ends it even if the caller is cancelled.
            self._unsubscribe = self._background.subscribe((EVERY_ROW,), self._apply, start=False)
        await run_in_thread(self._background.start)

    def add(self, uri: str) -> None:
        """Report new versions of the resource at ``uri`` too. Ignore an unknown address."""
        address = parse_address(uri)
        if address is not None:
            key = address.zone, address.path
            self._uris[key] = self._uris.get(key, frozenset()) | {uri}

    def remove(self, uri: str) -> None:
        """Report no new versions of the resource at ``uri``."""
        self._uris = {key: left for key, uris in self._uris.items() if (left := uris - {uri})}

    def close(self) -> None:
        """Report nothing from now on."""
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _apply(self, row: Row) -> None:
        if row.version is None or row.outcome != "ok":
            return
        uris = sorted(self._uris.get((row.zone, row.path), ()))
        events: list[ServerEvent] = [ResourceUpdated(uri) for uri in uris if self._is_readable(uri)]
        if self._has_list and self._resources.changes_list(row):
            events.append(ResourcesListChanged())
        if not events:
            return
        if not self._is_authorized():
            call_soon_threadsafe(self._loop, self._on_end)
        else:
            call_soon_threadsafe(self._loop, lambda: self._collect(events))

    def _collect(self, events: Sequence[ServerEvent]) -> None:
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending |= dict.fromkeys(events)

    def _flush(self) -> None:
        events, self._pending = self._pending, {}
        for event in events:
            self._on_event(event)


class _StreamBus:
    """The events of one stream of ``actor``. Used on the event loop only."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self.handler = ListenHandler(self, max_buffered_events=_MAX_EVENTS)
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}

    def deliver(self, event: ServerEvent) -> None:
        """Send ``event`` to the client if it asked for it."""
        for listener in [*self._listeners.values()]:
            listener(event)

    async def publish(self, event: ServerEvent) -> None:
        """Do as `deliver`. The MCP library's interface."""
        self.deliver(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call ``listener`` with each event. Return an unsubscribe function. The MCP library's interface."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None


class ChangeNotifier:
    """Notifies the clients of one server.

    - ``has_one_client``: whether the server has one client, whose connection stays open. If it is an older
      client, it is notified on the connection.
    - ``is_authorized``: returns whether the client of a request may still connect. Called on a background
      thread.
    """

    def __init__(
        self,
        background: Background,
        resources: WorkspaceResources,
        *,
        has_one_client: bool = False,
        is_authorized: Callable[[Context], bool] = lambda context: True,
    ) -> None:
        self._background = background
        self._resources = resources
        self.has_one_client = has_one_client
        self._is_authorized = is_authorized
        self._streams: set[_StreamBus] = set()
        self._listed: dict[str, Sequence[str]] = {}
        """The tools that a client of each agent listed last."""
        self._watch: ResourceWatch | None = None
        """The resources of an older client."""
        self._sending: dict[str, asyncio.Task[None]] = {}
        """The notifications that the older client has not read yet, by address."""

    def record_listed(self, actor: str, names: Sequence[str]) -> None:
        """Record that the client of ``actor`` listed the tools ``names``."""
        self._listed[actor] = names

    def is_listening(self, actor: str) -> bool:
        """Return whether a client of ``actor`` may need to be notified of changes to its list of tools."""
        return self.has_one_client or any(each.actor == actor for each in self._streams)

    async def notify_tools(self, context: Context, actor: str, names: Sequence[str]) -> None:
        """Notify the clients of ``actor`` once if its tools are now ``names``, and differ from the listed
        tools. They change because the tools of buffers depend on their state."""
        if self._listed.get(actor, names) == names:
            return
        self._listed[actor] = names
        if self.has_one_client:
            await context.session.send_tool_list_changed()
        for stream in [*self._streams]:
            if stream.actor == actor:
                stream.deliver(ToolsListChanged())

    async def listen(
        self,
        context: Context,
        toolbox: Toolbox,
        params: types.SubscriptionsListenRequestParams,
        is_readable: IsReadable,
    ) -> types.SubscriptionsListenResult:
        """Serve the subscription ``params`` of the agent of ``toolbox`` until the client ends it.

        The first message lists what is reported. Raise `MCPError` if the agent has too many streams.
        """
        if sum(each.actor == toolbox.actor for each in self._streams) >= MAX_STREAMS:
            raise MCPError(INTERNAL_ERROR, toolbox.texts("resource.streams", most=MAX_STREAMS))
        asked = params.notifications
        stream = _StreamBus(toolbox.actor)
        self._streams.add(stream)
        watch = ResourceWatch(
            self._background,
            self._resources,
            is_readable,
            stream.deliver,
            has_list=asked.resources_list_changed is True,
            is_authorized=lambda: self._is_authorized(context),
            on_end=stream.handler.close,
        )
        try:
            uris = await run_in_thread(_readable, asked.resource_subscriptions or (), is_readable)
            for uri in uris:
                watch.add(uri)
            if uris or asked.resources_list_changed:
                await watch.start()
            honored = types.SubscriptionFilter(
                tools_list_changed=asked.tools_list_changed,
                resources_list_changed=asked.resources_list_changed,
                resource_subscriptions=uris,
            )
            return await stream.handler(context, params.model_copy(update={"notifications": honored}))
        finally:
            watch.close()
            self._streams.discard(stream)

    async def subscribe(
        self, context: Context, toolbox: Toolbox, uri: str, is_readable: IsReadable
    ) -> types.EmptyResult:
        """Notify the older client of ``context`` of new versions of the resource at ``uri``. Raise
        `MCPError`."""
        session = context.session
        if self._watch is None:

            def send(event: ServerEvent) -> None:
                # A client that reads nothing is sent one notification of each resource.
                if isinstance(event, ResourceUpdated) and (uri := event.uri) not in self._sending:
                    self._sending[uri] = task = asyncio.ensure_future(session.send_resource_updated(uri))
                    task.add_done_callback(lambda _: self._sending.pop(uri, None))

            self._watch = ResourceWatch(self._background, self._resources, is_readable, send)
        if not await run_in_thread(is_readable, uri):
            raise MCPError(INVALID_PARAMS, toolbox.texts("resource.unreadable", uri=uri[:200]))
        if len(self._watch) >= MAX_RESOURCES:
            raise MCPError(INVALID_PARAMS, toolbox.texts("resource.too_many", most=MAX_RESOURCES))
        self._watch.add(uri)
        await self._watch.start()
        return types.EmptyResult()

    def unsubscribe(self, uri: str) -> types.EmptyResult:
        """Undo `subscribe`."""
        if self._watch is not None:
            self._watch.remove(uri)
        return types.EmptyResult()

    def close(self) -> None:
        """End all subscriptions. Streams end with a result, which tells the clients that this is no
        failure."""
        if self._watch is not None:
            self._watch.close()
        for stream in self._streams:
            stream.handler.close()


def _readable(uris: Sequence[str], is_readable: IsReadable) -> list[str]:
    """Return the first readable addresses of ``uris``, at most `MAX_RESOURCES`."""
    return [uri for uri in [*dict.fromkeys(uris)][:MAX_RESOURCES] if is_readable(uri)]
