"""Commands of agents are shown with their other work."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from tui.driver import dashboard
from watchroom import Agent, Workspace


async def test_a_command_is_seen_with_how_it_ended_and_what_it_changed(
    workspace: Workspace, tmp_path: Path
) -> None:
    if workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    task = workspace.tasks.submit("human:dana", "Build a calculator.", tmp_path / "work")
    workspace.register([Agent("alice", task=task.id)])
    alice = workspace.tools("alice")
    ok(alice, "run_command", command="echo 'def add(a, b): return a + b' > calc.py")
    refused(alice, "run_command", command="echo no tests >&2; exit 5")
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.sees("Build a calculator.", "exit 0", "exit 5", "calc.py", "echo no tests")
        assert not user.shows("output"), "what it printed are no rows of their own there"
        await user.press("z")
        await user.sees("output")
