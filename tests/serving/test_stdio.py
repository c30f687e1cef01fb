"""The server as a client starts it, on standard input and output."""

from __future__ import annotations

from pathlib import Path

from cli.running import spawned
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


def test_who_is_not_registered_is_told_so(root: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    ended = spawned("mcp", str(root), "--agent", "mallory", given="")
    assert ended.returncode == 1
    assert "mallory" in ended.stderr
    assert ended.stdout == ""


def test_wrong_usage_is_told(root: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    for arguments in (
        ["--agent", "alice", "--toolsets", "colab"],
        ["--agent", "alice", "--ask", "colab_write"],
        ["--http", "70000"],
        [],
    ):
        ended = spawned("mcp", str(root), *arguments, given="")
        assert (ended.returncode, ended.stdout) == (2, "")
