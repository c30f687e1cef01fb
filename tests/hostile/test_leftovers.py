"""Whatever tree a command leaves, the tools of its task go on, and nothing leaves the dispatcher."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import ok
from hostile.leftovers import ODD_TREE, deep_tree, emptied_after
from tasking import Team
from watchroom import Agent, Row, Workspace
from watchroom.platform.sandbox.supervisor import remove_tree


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with Workspace.open(tmp_path / "team") as workspace:
        if workspace.commands.sandbox.best is None:
            pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
        folder = tmp_path / "one"
        task = workspace.tasks.submit("human:dana", "Build something.", folder)
        workspace.register([Agent("alice", task=task.id)])
        with emptied_after(folder):
            yield Team(workspace, workspace.tools("alice"), workspace.tools("alice"), folder, folder)


def left_out(team: Team) -> list[Row]:
    team.workspace.flush()
    return [row for row in team.workspace.journal.rows(limit=10_000) if row.error == "left_out"]


def use_every_tool(team: Team) -> list[dict[str, Any]]:
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("get_workspace_info", {}),
        ("list_files", {}),
        ("write_file", {"path": "notes.md", "content": "x"}),
        ("read_file", {"path": "notes.md"}),
        ("run_command", {"command": "true"}),
        ("open_buffer", {"source": "file", "path": "notes.md"}),
    )
    results = [team.one.dispatch_tool_call(tool, arguments) for tool, arguments in calls]
    json.dumps(results).encode()
    return results


def test_a_tree_deeper_than_python_recurses_is_left_out_and_said_so_once(team: Team) -> None:
    first = ok(team.one, "run_command", command=deep_tree())
    assert first["leftOut"] == 1
    assert "32" in first["notice"]
    assert all(result["success"] for result in use_every_tool(team))
    assert "leftOut" not in ok(team.one, "run_command", command="true")
    (row,) = left_out(team)
    assert (row.outcome, row.detail["count"]) == ("failed", 1)
    assert row.path.count("/") == 32
    info = ok(team.one, "get_workspace_info")
    assert (info["truncated"], info["dirCount"]) == (True, 512)
    assert team.workspace.verify() == []


def test_an_odd_tree_stops_nothing(team: Team) -> None:
    ok(team.one, "run_command", command=ODD_TREE)
    results = use_every_tool(team)
    assert [result["success"] for result in results[1:]] == [True] * 5
    # What cannot be looked into cannot be counted, unless one is root.
    assert results[0]["success"] or results[0]["error"] == "permission_denied"
    assert len(left_out(team)) == 1


def test_a_tree_is_removed_however_deep_and_whatever_its_modes(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "c").symlink_to(tmp_path)
    (top / "a" / "b" / "file").touch()
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0o500)
    top.chmod(0)
    remove_tree(str(top))
    assert list(tmp_path.iterdir()) == []
