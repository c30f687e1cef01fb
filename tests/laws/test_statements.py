"""A call of a tool asks little of the journal, however many agents, rows and handoffs there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from watchroom import Json, Workspace
from watchroom.journal import SqliteJournal

HANDOFFS = 10
CALLS: dict[str, tuple[int, list[dict[str, Json]]]] = {
    "collab_write": (
        3,
        [{"filepath": "a.md", "content": "x", "message": "m", "expected_version": n} for n in range(3)],
    ),
    "send_message": (6, [{"to": "user", "payload": {"text": "Hello."}}] * 3),
    "write_file": (6, [{"path": "a.py", "content": f"print({n})"} for n in range(3)]),
    "spawn_agent": (12, [{"role": f"tester{n}", "instructions": "Test."} for n in range(3)]),
    "check_my_handoffs": (4, [{}] * 3),
}


@pytest.mark.parametrize("tool", CALLS)
def test_a_call_asks_few_statements(workspace: Workspace, tmp_path: Path, tool: str) -> None:
    most, calls = CALLS[tool]
    journal = workspace.journal
    assert isinstance(journal, SqliteJournal)
    task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / "app")
    first = workspace.members.start(task).id
    for number in range(HANDOFFS):
        handoff: dict[str, Json] = {
            "to_agent": first,
            "filename": f"{number}.md",
            "content": "x",
            "message": "m",
        }
        assert workspace.tools("alice").dispatch_tool_call("handoff_file", handoff)["success"]
    toolbox = workspace.tools(first)
    asked = []
    for arguments in calls:
        workspace.flush()
        before = journal.statements
        assert toolbox.dispatch_tool_call(tool, arguments)["success"]
        asked.append(journal.statements - before)
    assert max(asked[1:]) <= most, asked
