"""A call of a tool asks a server few questions: each is a round trip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from statements import counted_on_postgres
from watchroom import Json, Toolbox, Workspace

pytestmark = pytest.mark.postgres

FILE: dict[str, Json] = {"filepath": "plan.md", "content": "x", "message": "m"}


def test_a_call_asks_few_questions(new_database: Callable[[], str], tmp_path: Path) -> None:
    with (
        counted_on_postgres() as counted,
        Workspace.open(new_database(), ["alice", "bob"], checkout=tmp_path / "team") as workspace,
    ):
        task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / "app")
        lead = workspace.tools(workspace.members.start(task).id)
        alice = workspace.tools("alice")

        def asked(toolbox: Toolbox, tool: str, *calls: dict[str, Json], succeeds: bool = True) -> int:
            """How many questions the last of ``calls`` asks: what a process asks once is no call's."""
            count = 0
            for arguments in calls:
                workspace.flush()
                before = counted.statements
                assert toolbox.dispatch_tool_call(tool, arguments)["success"] is succeeds
                count = counted.statements - before
            assert count > 0
            return count

        assert asked(alice, "collab_write", *(FILE | {"expected_version": n} for n in range(3))) <= 2
        assert asked(alice, "collab_write", FILE, FILE) <= 2
        stale = FILE | {"expected_version": 1}
        assert asked(alice, "collab_write", stale, stale, succeeds=False) <= 4
        reads: list[dict[str, Json]] = [{"filepath": "plan.md"}] * 2
        assert asked(alice, "collab_read", *reads) <= 3
        # What the actor has seen of a path is asked for together with who it is.
        assert asked(alice, "collab_write", FILE | {"filepath": "a.md"}, FILE | {"filepath": "b.md"}) <= 2
        roles: list[dict[str, Json]] = [{"role": f"tester{n}", "instructions": "Test."} for n in range(2)]
        assert asked(lead, "spawn_agent", *roles) <= 6
        messages: list[dict[str, Json]] = [{"to": "user", "payload": {"text": "Hello."}}] * 2
        assert asked(lead, "send_message", *messages) <= 2


def test_notices_cost_questions_only_if_others_changed_something(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    with (
        counted_on_postgres() as counted,
        Workspace.open(new_database(), ["alice", "bob"], checkout=tmp_path / "team") as workspace,
    ):
        alice, bob = workspace.tools("alice"), workspace.tools("bob")

        def asked() -> tuple[int, int]:
            """How many questions a call of alice asks, and how many notices it gives."""
            workspace.flush()
            before = counted.statements
            result: dict[str, Any] = alice.dispatch_tool_call("check_my_handoffs", {})
            return counted.statements - before, len(result.get("notices", []))

        asked()
        few, _ = asked()
        for number in range(10):
            alice.dispatch_tool_call("collab_write", FILE | {"filepath": f"{number}.md"})
        assert asked() == (few, 0)
        for number in range(3):
            change = FILE | {"filepath": f"{number}.md", "expected_version": 1}
            assert bob.dispatch_tool_call("collab_write", change)["success"]
        assert asked() == (few + 3, 3)
        assert asked() == (few, 0)
