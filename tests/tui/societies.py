"""A team at a task: agents that spawn others, write to each other, change files and run commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from tui.driver import User
from watchroom import Workspace

REQUIREMENT = "Build a calculator.\nIt reads a line and prints its value."
FIRST = "def value(line):\n    return 0\n"
SECOND = "def value(line):\n    return int(line)\n"


def begins(workspace: Workspace, folder: Path, text: str = REQUIREMENT) -> str:
    """Submit a task of dana's with its first agent ``root``. Return its id."""
    task = workspace.tasks.submit("human:dana", text, folder)
    workspace.members.start(task)
    return task.id


def works(workspace: Workspace, folder: Path) -> str:
    """Submit a task with four agents, one of them ended, with files and messages. Return its id."""
    task = begins(workspace, folder)
    root = workspace.tools("root")
    ok(root, "spawn_agent", role="architect", instructions="Plan it.", name="ada")
    ada = workspace.tools("ada")
    ok(ada, "spawn_agent", role="programmer", instructions="Write value.py.\nTest it.", name="eve")
    ok(ada, "spawn_agent", role="tester", instructions="Test it.", name="tom")
    eve, tom = workspace.tools("eve"), workspace.tools("tom")
    ok(eve, "write_file", path="calc/value.py", content=FIRST)
    ok(eve, "write_file", path="README.md", content="# Calculator\n")
    ok(eve, "write_file", path="calc/value.py", content=SECOND)
    ok(eve, "send_message", to="ada", payload={"text": "It is written.\nAnd tested."})
    ok(tom, "send_message", to="ada", payload={"text": "It works."})
    ok(ada, "terminate_agent", agent_id="tom", reason="no more to test")
    ok(root, "send_message", to="user", payload={"text": "May I go on?\nThe plan is in README.md."})
    return task


def runs(workspace: Workspace, agent: str, command: str) -> None:
    """Let the agent run a command, with any result."""
    workspace.tools(agent).dispatch_tool_call("run_command", {"command": command})


def needs_sandbox(workspace: Workspace) -> None:
    """Skip the test if no command can run."""
    if workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")


async def to_tasks(user: User, words: str = "Build a calculator.") -> None:
    """Go to the tasks, and wait until the newest is shown."""
    await user.goes_to("9", "tasks")
    await user.sees(words)


async def to_pane(user: User, pane: str) -> None:
    """Focus a pane."""
    for _ in range(len(user.app.screen.query(".pane"))):
        if user.pane == pane:
            return
        await user.press("tab")
    assert user.pane == pane
