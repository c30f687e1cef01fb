"""A call of a tool asks little of the journal, however many agents, rows and handoffs there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from damage import journal_of
from statements import StatementCount, counted_on_postgres, counted_on_sqlite
from watchroom import Json, Workspace
from watchroom.kernel.journal import open_journal
from watchroom.model import Write

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


@pytest.fixture
def count(journal_name: str) -> Iterator[StatementCount]:
    """The statements of journals that are opened after this fixture: name it before ``workspace``."""
    with counted_on_postgres() if journal_name == "postgres" else counted_on_sqlite() as counted:
        yield counted


@pytest.mark.parametrize("tool", CALLS)
def test_a_call_asks_few_statements(
    count: StatementCount, workspace: Workspace, tmp_path: Path, tool: str
) -> None:
    most, calls = CALLS[tool]
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
        before = count.statements
        assert toolbox.dispatch_tool_call(tool, arguments)["success"]
        asked.append(count.statements - before)
    assert 0 < max(asked[1:]) <= most, asked


def test_files_of_many_versions_are_made_by_few_statements(
    count: StatementCount, root: Path, workspace: Workspace
) -> None:
    """Whoever is behind what others wrote asks for the texts of a path together."""
    texts = [f"{number}\n" * 1000 for number in range(50)]
    with closing(open_journal(journal_of(root))) as others:
        others.append([Write("bob", "t", "collab", "plan.md", text) for text in texts])
    before = count.statements
    workspace.flush()
    assert 0 < count.statements - before <= 10
    made = root / "collaborative/.versions/plan.md"
    assert [(made / f"v{number}.txt").read_text() for number in range(1, 51)] == texts
