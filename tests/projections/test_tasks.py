"""Tasks, their agents, messages with their marks, and commands, as the rows tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok
from projections.folding import folded, needs
from watchroom import Agent, Workspace
from watchroom.agents.simulation import developer
from watchroom.agents.society import Society


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "team") as opened:
        yield opened


def begun(workspace: Workspace, folder: Path) -> str:
    task = workspace.tasks.submit("human:dana", "Build it.\nSoon.", folder)
    workspace.members.start(task)
    return task.id


def test_a_task_has_its_agents_as_a_tree(workspace: Workspace, tmp_path: Path) -> None:
    task = begun(workspace, tmp_path / "one")
    root = workspace.tools("root")
    for name in ("ada", "bob"):
        ok(root, "spawn_agent", role="architect", instructions="Plan.", name=name)
    ok(workspace.tools("ada"), "spawn_agent", role="programmer", instructions="Write.", name="eve")
    workspace.register([Agent("zoe", "tester", task=task)])
    (view,) = folded(workspace.journal).tasks
    assert (view.id, view.row.message, view.folder, view.status) == (
        task,
        "Build it.",
        str(tmp_path / "one"),
        "open",
    )
    tree = [(each.id, each.parent, each.depth, each.role, each.layer) for each in view.members]
    assert tree == [
        ("root", "", 0, "root", "top"),
        ("ada", "root", 1, "architect", "mid"),
        ("eve", "ada", 2, "programmer", "bottom"),
        ("bob", "root", 1, "architect", "mid"),
        ("zoe", "", 0, "tester", "bottom"),
    ]
    assert [each.id for each in workspace.members.of_task(task)] == [each.id for each in view.members]
    ok(root, "terminate_agent", agent_id="ada")
    (view,) = folded(workspace.journal).tasks
    assert {each.id for each in view.members if each.ended} == {"ada", "eve"}
    ok(root, "end_task", status="failed", report="No.")
    (view,) = folded(workspace.journal).tasks
    assert view.status == "failed"
    assert all(each.ended for each in view.members)


def test_what_an_agent_writes_to_people_needs_them_until_they_looked_or_answered(
    workspace: Workspace, tmp_path: Path
) -> None:
    begun(workspace, tmp_path / "one")
    root = workspace.tools("root")
    for text in ("The plan.", "And more."):
        ok(root, "send_message", to="user", payload={"text": text})
    (need,) = needs(workspace)
    assert (need.kind, need.key, need.times, need.is_acknowledgeable) == ("message", "root", 2, True)
    dana = workspace.tools_for_human("dana")
    ok(dana, "mark_as_seen", row=need.row.seq)
    model = folded(workspace.journal)
    assert model.needs == ()
    assert all(each.delivered == each.row and each.read for each in model.messages)
    ok(root, "send_message", to="user", payload={"text": "Well?"})
    (need,) = needs(workspace)
    assert (need.times, need.row.message) == (1, "Well?")


async def test_a_message_is_delivered_when_it_is_taken_in_and_read_when_the_model_is_given_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    society = Society(workspace, lambda member: developer(member, "en"))
    task = begun(workspace, tmp_path / "one")
    async with asyncio.timeout(60):
        await society.run(task, stay=False)
    model = folded(workspace.journal)
    between = [each for each in model.messages if each.receiver != "user" and each.sender != "system"]
    assert between
    for message in between:
        assert message.task == task
        assert message.delivered is not None
        assert message.read is not None
        assert message.delivered.actor == message.read.actor == message.receiver
        assert message.row.seq < message.delivered.seq < message.read.seq
    for command in model.commands:
        assert command.ended is not None
        assert command.task == task


def test_a_command_tells_how_it_goes(workspace: Workspace, tmp_path: Path) -> None:
    if workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    begun(workspace, tmp_path / "one")
    root = workspace.tools("root")
    ok(root, "run_command", command="echo one; echo two")
    root.dispatch_tool_call("run_command", {"command": "exit 3"})
    newer, older = folded(workspace.journal).commands
    assert (older.exit_code, newer.exit_code) == (0, 3)
    assert older.printed is not None
    assert older.begun.message == "echo one; echo two"


def test_nobody_need_help_an_agent_that_has_ended(workspace: Workspace, tmp_path: Path) -> None:
    begun(workspace, tmp_path / "one")
    root = workspace.tools("root")
    for _ in range(3):
        root.dispatch_tool_call("read_file", {"path": "../x"})
    assert [need.kind for need in needs(workspace)] == ["denied"]
    ok(workspace.tools_for_human("dana"), "terminate_agent", agent_id="root")
    assert needs(workspace) == []
