"""The server as a client starts it, on standard input and output."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli.running import Captured, misuse
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.server.subscriptions import ToolsListChanged
from mcp.types import ToolListChangedNotification
from serving.clients import called, over_stdio
from watchroom import Workspace


async def test_an_agent_joins_under_its_own_identity(root: Path) -> None:
    Workspace.open(root, agents=["alice", "bob"]).close()
    async with over_stdio(root, "alice") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "collab_write" in names
        assert "whiteboard_read" not in names
        await called(client, "collab_write", filepath="plan.md", content="hers\n", message="m")
    with Workspace.open(root) as workspace:
        head = workspace.journal.head("collab", "plan.md")
        assert head is not None
        assert head.actor == "alice"
        assert workspace.verify() == []


async def test_two_agents_in_processes_of_their_own_meet(root: Path) -> None:
    Workspace.open(root, agents=["alice", "bob"]).close()
    async with over_stdio(root, "alice") as alice, over_stdio(root, "bob") as bob:
        handed = {"to_agent": "bob", "filename": "a.md", "content": "for bob\n", "message": "look"}
        await called(alice, "handoff_file", **handed)
        waiting = (await called(bob, "check_my_handoffs"))["handoffs"]
        assert [each["from"] for each in waiting] == ["alice"]


async def test_toolsets_can_be_chosen(root: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    async with over_stdio(root, "alice", "--toolsets", "board,buffer") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"whiteboard_read", "open_buffer"} <= names
    assert "collab_write" not in names


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_an_older_client_is_told_that_a_buffers_tools_have_come(root: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    told: asyncio.Queue[IncomingMessage] = asyncio.Queue()
    client_is = {"mode": "legacy", "message_handler": told.put}
    async with over_stdio(root, "alice", "--toolsets", "private,buffer", client=client_is) as client:
        assert "a_append" not in await names_of(client)
        await called(client, "save_to_my_workspace", filename="a.md", content="one\n")
        assert told.empty()
        await called(client, "open_buffer", source="private", path="a.md")
        assert isinstance(await told.get(), ToolListChangedNotification)
        assert "a_append" in await names_of(client)
        await called(client, "a_append", text="two\n")
        await called(client, "a_flush")
        await called(client, "close_buffer", buffer="a")
        assert isinstance(await told.get(), ToolListChangedNotification)
        assert "a_append" not in await names_of(client)


async def test_a_client_that_listens_is_told_that_a_buffers_tools_have_come(root: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    async with (
        over_stdio(root, "alice", "--toolsets", "private,buffer") as client,
        client.listen(tools_list_changed=True, resources_list_changed=True) as heard,
    ):
        assert heard.honored.tools_list_changed is True
        assert heard.honored.resources_list_changed is True
        assert "a_append" not in await names_of(client)
        await called(client, "save_to_my_workspace", filename="a.md", content="one\n")
        await called(client, "open_buffer", source="private", path="a.md")
        assert await anext(aiter(heard)) == ToolsListChanged()
        assert "a_append" in await names_of(client)


def test_wrong_usage_is_told(capsys: Captured, root: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    for arguments in (
        ["--agent", "alice", "--toolsets", "colab"],
        ["--agent", "alice", "--ask", "colab_write"],
        ["--http", "70000"],
        [],
    ):
        assert misuse(capsys, "mcp", str(root), *arguments)
