"""Clients that subscribed to shared files and boards are notified when somebody writes them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from calls import ok
from mcp import Client, MCPError, types
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, Subscription, ToolsListChanged
from mcp.types import MISSING_REQUIRED_CLIENT_CAPABILITY, ResourceUpdatedNotification
from pydantic import TypeAdapter
from runtime.scripted import until
from service_process import service_pid
from serving.clients import over_http, over_stdio, serving
from watchroom import Toolbox, Workspace
from watchroom.serving.notifications import MAX_RESOURCES, MAX_STREAMS, ChangeNotifier, ResourceWatch
from watchroom.serving.resources import WorkspaceResources

PLAN = "watchroom://collab/plan.md"


@asynccontextmanager
async def connected(transport: str, workspace: Workspace, agent: str) -> AsyncIterator[Client]:
    if transport == "stdio":
        async with over_stdio(Path(workspace.root), agent) as client:
            yield client
    else:
        with serving(workspace) as url:
            async with over_http(url, workspace.access.create("human:dana", agent)) as client:
                yield client


async def heard(subscription: Subscription, count: int = 1) -> list[Any]:
    """The next events, sorted."""
    async with asyncio.timeout(20):
        events = aiter(subscription)
        return sorted([await anext(events) for _ in range(count)], key=str)


@pytest.mark.sqlite("The server of stdio opens the folder.")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_write_of_another_is_reported(workspace: Workspace, bob: Toolbox, transport: str) -> None:
    board, history = "watchroom://board/global", "watchroom://history/docs/a%20b/%E8%AE%A1%E5%88%92.md"
    spelled = "watchroom://collab/docs/a b/计划.md"
    async with (
        connected(transport, workspace, "alice") as client,
        client.listen(resource_subscriptions=[PLAN, board, history, spelled]) as subscription,
    ):
        assert subscription.honored.resource_subscriptions == [PLAN, board, history, spelled]
        ok(bob, "collab_write", filepath="other.md", content="x\n", message="m")
        ok(bob, "collab_write", filepath="plan.md", content="x\n", message="m")
        assert await heard(subscription) == [ResourceUpdated(PLAN)]
        ok(workspace.tools_for_human("dana"), "whiteboard_append", board="global", content="Done.")
        assert await heard(subscription) == [ResourceUpdated(board)]
        ok(bob, "collab_write", filepath="docs/a b/计划.md", content="x\n", message="m")
        assert await heard(subscription, 2) == [ResourceUpdated(spelled), ResourceUpdated(history)]


async def test_the_list_is_reported_when_a_file_comes_or_goes(workspace: Workspace, bob: Toolbox) -> None:
    async with (
        connected("http", workspace, "alice") as client,
        client.listen(resources_list_changed=True, resource_subscriptions=[PLAN]) as subscription,
    ):
        ok(bob, "collab_write", filepath="plan.md", content="x\n", message="m")
        assert await heard(subscription, 2) == [ResourceUpdated(PLAN), ResourcesListChanged()]
        ok(bob, "collab_write", filepath="plan.md", content="y\n", message="m")
        assert await heard(subscription) == [ResourceUpdated(PLAN)]


async def test_over_http_an_agent_is_told_of_its_own_tools(workspace: Workspace, bob: Toolbox) -> None:
    with serving(workspace) as url:
        tokens = {agent: workspace.access.create("human:dana", agent) for agent in ("alice", "bob")}
        async with (
            over_http(url, tokens["alice"]) as client,
            over_http(url, tokens["bob"]) as other,
            client.listen(tools_list_changed=True) as subscription,
        ):
            await client.list_tools()
            await other.list_tools()
            await other.call_tool("open_buffer", {"source": "collab", "path": "bobs.md"})
            await client.call_tool("collab_list", {})
            await client.call_tool("open_buffer", {"source": "collab", "path": "plan.md"})
            assert await heard(subscription) == [ToolsListChanged()]
            await client.list_tools()
            await client.call_tool("close_buffer", {"buffer": "plan"})
            assert await heard(subscription) == [ToolsListChanged()]


async def test_tasks_cannot_be_subscribed_to_without_support_for_them(workspace: Workspace) -> None:
    wanted: Any = {"resourceSubscriptions": [PLAN], "taskIds": ["a" * 32]}
    with serving(workspace) as url:
        async with over_http(url, workspace.access.create("human:dana", "alice")) as client:
            request = types.Request[dict[str, Any], str](
                method="subscriptions/listen", params={"notifications": wanted}
            )
            with pytest.raises(MCPError) as refused:
                await client.session.send_request(request, TypeAdapter[Any](dict[str, Any]))
            assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_what_an_agent_cannot_read_is_not_reported(workspace: Workspace, alice: Toolbox) -> None:
    hers = "watchroom://board/bottom-layer-alice"
    asked = [hers, "watchroom://collab/../x", "file:///etc/passwd", "watchroom://private/alice/a.md", PLAN]
    with serving(workspace, approval_tools=["collab_history"]) as url:
        async with over_http(url, workspace.access.create("human:dana", "bob")) as client:
            before = workspace.journal.last_seq()
            listening = client.listen(resource_subscriptions=[*asked, "watchroom://history/plan.md"])
            async with listening as subscription:
                assert subscription.honored.resource_subscriptions == [PLAN]
                assert workspace.journal.last_seq() == before
                ok(alice, "whiteboard_append", board="bottom-layer-alice", content="Mine.")
                ok(alice, "collab_write", filepath="plan.md", content="x\n", message="m")
                assert await heard(subscription) == [ResourceUpdated(PLAN)]


async def test_subscribing_is_no_reading(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    ok(bob, "collab_write", filepath="plan.md", content="bob's\n", message="m")
    async with (
        connected("http", workspace, "alice") as client,
        client.listen(resource_subscriptions=[PLAN]) as subscription,
    ):
        ok(bob, "collab_write", filepath="plan.md", content="bob's again\n", message="m")
        await heard(subscription)
        lost = await client.call_tool("collab_write", {"filepath": "plan.md", "content": "x", "message": "m"})
    assert lost.is_error


async def test_a_revoked_token_ends_the_subscription(workspace: Workspace, bob: Toolbox) -> None:
    with serving(workspace) as url:
        token = workspace.access.create("human:dana", "alice")
        async with (
            over_http(url, token) as client,
            client.listen(resource_subscriptions=[PLAN]) as subscription,
        ):
            (made,) = workspace.access.list("alice")
            workspace.access.revoke("human:dana", "alice", made.id)
            ok(bob, "collab_write", filepath="plan.md", content="x\n", message="m")
            async with asyncio.timeout(20):
                assert [event async for event in subscription] == []


async def test_subscriptions_are_bounded(workspace: Workspace, bob: Toolbox) -> None:
    many = [f"watchroom://collab/{number}.md" for number in range(MAX_RESOURCES + 5)]
    with serving(workspace) as url:
        tokens = {agent: workspace.access.create("human:dana", agent) for agent in ("alice", "bob")}
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(over_http(url, tokens["alice"]))
            first = await stack.enter_async_context(client.listen(resource_subscriptions=many))
            assert first.honored.resource_subscriptions == many[:MAX_RESOURCES]
            for _ in range(MAX_STREAMS - 1):
                await stack.enter_async_context(client.listen(resource_subscriptions=[PLAN]))
            with pytest.raises(MCPError, match=str(MAX_STREAMS)):
                await stack.enter_async_context(client.listen(resource_subscriptions=[PLAN]))
            # Another agent has its own bound.
            other = await stack.enter_async_context(over_http(url, tokens["bob"]))
            await stack.enter_async_context(other.listen(resource_subscriptions=[PLAN]))
        # An ended subscription leaves its place.
        async with over_http(url, tokens["alice"]) as client, AsyncExitStack() as again:
            for _ in range(MAX_STREAMS):
                await again.enter_async_context(client.listen(resource_subscriptions=[PLAN]))


async def test_a_burst_is_few_notifications_and_nothing_is_kept_at_the_end(
    workspace: Workspace, bob: Toolbox
) -> None:
    with serving(workspace) as url:
        before = len(workspace.background._subscribers["*"])
        async with over_http(url, workspace.access.create("human:dana", "alice")) as client:
            async with client.listen(resource_subscriptions=[PLAN]) as subscription:
                for number in range(50):
                    ok(bob, "collab_write", filepath="plan.md", content=f"{number}\n", message="m")
                assert await heard(subscription) == [ResourceUpdated(PLAN)]
            await until(lambda: len(workspace.background._subscribers["*"]) == before)


async def test_a_subscription_that_is_cancelled_at_its_start_is_not_kept(workspace: Workspace) -> None:
    before = len(workspace.background._subscribers.get("*", ()))
    resources = WorkspaceResources(workspace.journal, "en")
    watches = [
        ResourceWatch(workspace.background, resources, lambda uri: True, lambda event: None)
        for _ in range(20)
    ]
    for watch in watches:
        starting = [asyncio.ensure_future(watch.start()) for _ in range(2)]
        await asyncio.sleep(0)
        for each in starting:
            each.cancel()
        watch.close()
    await asyncio.to_thread(workspace.background.start)
    await asyncio.sleep(0.2)
    assert len(workspace.background._subscribers.get("*", ())) == before


async def test_an_older_client_that_reads_nothing_is_sent_one_notification(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    sent: list[str] = []

    async def send(uri: str) -> None:
        sent.append(uri)
        await asyncio.Event().wait()

    resources = WorkspaceResources(workspace.journal, "en")
    notifier = ChangeNotifier(workspace.background, resources, has_one_client=True)
    context: Any = SimpleNamespace(session=SimpleNamespace(send_resource_updated=send))
    await notifier.subscribe(context, alice, PLAN, lambda uri: True)
    for number in range(5):
        ok(bob, "collab_write", filepath="plan.md", content=f"{number}\n", message="m")
        await until(lambda: bool(sent))
        await asyncio.sleep(0.1)
    notifier.close()
    assert sent == [PLAN]


async def test_a_server_that_stops_says_that_the_subscription_ended(workspace: Workspace) -> None:
    token = workspace.access.create("human:dana", "alice")
    served = serving(workspace)
    url = served.__enter__()
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
        client.listen(resource_subscriptions=[PLAN]) as subscription,
    ):
        ended = asyncio.create_task(_all_of(subscription))
        await asyncio.to_thread(served.__exit__, None, None, None)
        async with asyncio.timeout(20):
            assert await ended == []


async def _all_of(subscription: Subscription) -> list[Any]:
    return [event async for event in subscription]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.sqlite("The server of stdio opens the folder.")
async def test_an_older_client_subscribes_to_one_resource_at_a_time(
    workspace: Workspace, bob: Toolbox
) -> None:
    told: asyncio.Queue[IncomingMessage] = asyncio.Queue()
    client_is = {"mode": "legacy", "message_handler": told.put}
    async with over_stdio(Path(workspace.root), "alice", client=client_is) as client:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.subscribe is True
        with pytest.raises(MCPError, match="permission"):
            await client.session.subscribe_resource("watchroom://board/bottom-layer-bob")
        await client.session.subscribe_resource(PLAN)
        ok(bob, "collab_write", filepath="plan.md", content="x\n", message="m")
        async with asyncio.timeout(20):
            message = await told.get()
        assert isinstance(message, ResourceUpdatedNotification)
        assert message.params.uri == PLAN
        await client.session.unsubscribe_resource(PLAN)
        await client.session.subscribe_resource("watchroom://collab/other.md")
        ok(bob, "collab_write", filepath="plan.md", content="y\n", message="m")
        ok(bob, "collab_write", filepath="other.md", content="y\n", message="m")
        async with asyncio.timeout(20):
            message = await told.get()
        assert isinstance(message, ResourceUpdatedNotification)
        assert message.params.uri == "watchroom://collab/other.md"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.sqlite("The server of stdio opens the folder.")
async def test_an_older_client_stays_subscribed_if_the_service_is_replaced(
    workspace: Workspace, bob: Toolbox
) -> None:
    told: asyncio.Queue[IncomingMessage] = asyncio.Queue()
    client_is = {"mode": "legacy", "message_handler": told.put}
    async with over_stdio(Path(workspace.root), "alice", client=client_is) as client:
        await client.session.subscribe_resource("watchroom://collab/other.md")
        await client.session.unsubscribe_resource("watchroom://collab/other.md")
        await client.session.subscribe_resource(PLAN)
        os.kill(service_pid(), signal.SIGKILL)
        # The first notification is for changes while no service was running.
        for _ in range(2):
            async with asyncio.timeout(60):
                message = await told.get()
            assert isinstance(message, ResourceUpdatedNotification)
            assert message.params.uri == PLAN
            ok(bob, "collab_write", filepath="other.md", content="y\n", message="m")
            ok(bob, "collab_write", filepath="plan.md", content="x\n", message="m")
