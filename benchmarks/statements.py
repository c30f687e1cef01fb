"""How many statements a call asks of the journal, counted: on a server each is a round trip.

Of each tool the second call is counted: what is asked once by a process is not what a call costs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from measure import Measure, scratch
from watchroom import Json, Toolbox, Workspace
from watchroom.journal import SqliteJournal

GOALS: Mapping[str, int] = {
    "collab_write": 3,
    "send_message": 6,
    "write_file": 6,
    "spawn_agent": 12,
    "check_my_handoffs": 4,
}


def measure() -> list[Measure]:
    """Of each tool the statements of its second call."""
    with (
        scratch() as folder,
        Workspace.open(os.path.join(folder, "team"), agents=["alice", "bob"]) as workspace,
    ):
        return _measure(workspace, os.path.join(folder, "app"))


def _measure(workspace: Workspace, folder: str) -> list[Measure]:
    task = workspace.tasks.submit("human:dana", "Build it.", folder)
    lead = workspace.tools(workspace.members.start(task).id)
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    file: dict[str, Json] = {"filepath": "plan.md", "content": "# Plan\n", "message": "m"}
    handoff: dict[str, Json] = {"to_agent": "bob", "content": "x", "message": "m"}
    calls: list[tuple[Toolbox, str, list[dict[str, Json]]]] = [
        (alice, "collab_write", [file | {"expected_version": 0}, file | {"expected_version": 1}]),
        (alice, "collab_read", [{"filepath": "plan.md"}] * 2),
        (alice, "save_to_my_workspace", [{"filename": "a.md", "content": text} for text in "xy"]),
        (alice, "handoff_file", [handoff | {"filename": f"{n}.md"} for n in range(3)]),
        (bob, "check_my_handoffs", [{}] * 2),
        (bob, "read_handoff", [{"from_agent": "alice", "filename": f"{n}.md"} for n in range(2)]),
        (alice, "whiteboard_append", [{"board": "bottom-layer-alice", "content": text} for text in "xy"]),
        (lead, "spawn_agent", [{"role": f"tester{n}", "instructions": "Test."} for n in range(2)]),
        (lead, "write_file", [{"path": "a.py", "content": text} for text in "xy"]),
        (lead, "read_file", [{"path": "a.py"}] * 2),
        (lead, "send_message", [{"to": "user", "payload": {"text": text}} for text in "xy"]),
    ]
    return [_counted(workspace, *call) for call in calls]


def _counted(workspace: Workspace, caller: Toolbox, tool: str, calls: list[dict[str, Json]]) -> Measure:
    journal = workspace.journal
    assert isinstance(journal, SqliteJournal)
    count = 0
    for arguments in calls:
        workspace.flush()
        before = journal.statements
        result = caller.dispatch_tool_call(tool, arguments)
        count = journal.statements - before
        assert result["success"], result
    return Measure(f"statements per call ({tool})", count, "", GOALS.get(tool))
