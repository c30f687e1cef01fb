"""Grants hold for clients with hooks and for clients that speak ACP: rules, pauses and revocations come first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients.attached import SESSION, AttachedClient, attendant, wait_for
from clients.test_acp import Run
from clients.test_waiting import ASKING, DENYING, add_rules
from runtime.scripted import say
from watchroom import Workspace
from watchroom.errors import GrantRefused
from watchroom.features.policy.grants import GrantChoice
from watchroom.features.requests.rows import decide_all
from watchroom.kernel.call_context import CallContext
from watchroom.model import ASK, Row

DANA = CallContext("human:dana")
ANSWERED = "hookSpecificOutput"


class Attached:
    """An attached client whose Bash calls a rule asks about, in the folder ``project``."""

    def __init__(self, workspace: Workspace, root: Path, project: Path) -> None:
        self.workspace = workspace
        self.project = project
        self.client = AttachedClient(root)
        self._count = 0

    def call(self, command: str, **more: object) -> Any:
        """Begin a call, and return its hook."""
        self._count += 1
        key = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{self._count}"}
        return self.client.begin("PreToolUse", **{"cwd": str(self.project), **key, **more})

    def asked(self, number: int) -> Row:
        """The request of the call ``number``."""
        return wait_for(self.workspace, lambda row: row.tool == ASK and row.path.endswith(f"/t{number}"))

    def decision(self, hook: Any) -> str:
        said = self.client.answer(hook)
        return str(said[ANSWERED]["permissionDecision"]) if said else ""

    def approve(self, asked: Row, *, approved: bool = True) -> None:
        request = self.workspace.requests.read(asked)
        self.workspace.requests.answer(DANA, asked.seq, decide_all(request, approved))


@pytest.fixture
def attached(root: Path, tmp_path: Path) -> Iterator[Attached]:
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        with attendant(root):
            project = tmp_path / "project"
            project.mkdir()
            client = Attached(workspace, root, project)
            client.client.hook("SessionStart", source="startup", cwd=str(project))
            yield client


def test_an_attached_clients_call_is_granted_and_its_longer_form_is_not(
    attached: Attached, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(attached.project)
    first = attached.call("npm test")
    asked = attached.asked(1)
    attached.approve(asked)
    assert attached.decision(first) == "allow"
    attached.workspace.grants.make(DANA, asked.seq, GrantChoice("session", 5))
    assert attached.decision(attached.call("npm test")) == "allow"
    # The same folder through a link is the same folder.
    assert attached.decision(attached.call("npm test", cwd=str(link))) == "allow"
    for number, (command, more) in enumerate(
        [
            ("npm test x", {}),
            ("cd .. && npm test", {}),
            ("A=1 npm test", {}),
            ("npm test", {"cwd": str(tmp_path)}),
        ],
        4,
    ):
        hook = attached.call(command, **more)
        attached.approve(attached.asked(number), approved=False)
        assert attached.decision(hook) == "deny"
    (state,) = attached.workspace.grants.list_active()
    assert state.uses_left == 3
    add_rules(attached.workspace, DENYING)
    config = Path(attached.workspace.root, ".watchroom/config.toml")
    config.write_text(config.read_text().replace(ASKING, ""))
    attached.workspace.scan()
    assert attached.decision(attached.call("npm test")) == "deny"
    assert attached.workspace.grants.list_active()[0].uses_left == 3


def test_a_grant_that_is_revoked_while_a_call_waits_for_a_pause_asks_again(attached: Attached) -> None:
    first = attached.call("npm test")
    attached.approve(attached.asked(1))
    assert attached.decision(first) == "allow"
    made = attached.workspace.grants.make(DANA, attached.asked(1).seq, GrantChoice("session", 5))
    say(attached.workspace, "pause_agent", agent_id="alice")
    waiting = attached.call("npm test")
    wait_for(attached.workspace, lambda row: row.detail.get("status") == "paused")
    attached.workspace.grants.revoke(DANA, made.seq)
    say(attached.workspace, "resume_agent", agent_id="alice")
    attached.approve(attached.asked(2), approved=False)
    assert attached.decision(waiting) == "deny"


def test_a_file_that_became_a_link_is_not_covered(attached: Attached) -> None:
    add_rules(attached.workspace, ASKING.replace("Bash", "Write"))
    plan, other = attached.project / "plan.md", attached.project / "other.md"
    plan.write_text("")

    def write(content: str) -> Any:
        key = {"file_path": str(plan), "content": content}
        return attached.call("", tool_name="Write", tool_input=key)

    first = write("1")
    attached.approve(attached.asked(1))
    assert attached.decision(first) == "allow"
    attached.workspace.grants.make(DANA, attached.asked(1).seq, GrantChoice("place", 5, 3600))
    assert attached.decision(write("2")) == "allow"
    plan.unlink()
    plan.symlink_to(other)
    third = write("3")
    attached.approve(attached.asked(3), approved=False)
    assert attached.decision(third) == "deny"


async def test_an_acp_clients_call_is_granted_once(workspace: Workspace, tmp_path: Path) -> None:
    def asks(number: int, command: str = "npm test") -> list[dict[str, Any]]:
        named = {"title": "Run", "kind": "execute", "_meta": {"tool": "Bash"}}
        call = {"toolCallId": f"c{number}", "status": "pending", **named}
        given = {"toolCallId": f"c{number}", "rawInput": {"command": command}}
        return [{"update": {"sessionUpdate": "tool_call", **call}}, {"ask": given}]

    run = Run(workspace, tmp_path, [*asks(1), *asks(2), *asks(3, "npm test x")])
    run.support = run.support._replace(tool_name=("_meta", "tool"))
    running = asyncio.create_task(run.once())
    first = await run.asked()
    workspace.grants.make(DANA, first.seq, GrantChoice("session", 5))
    workspace.requests.answer(DANA, first.seq, decide_all(workspace.requests.read(first), True))
    third = await run.asked("alice/scripted-1/c3")
    second = workspace.requests.find_end("alice/scripted-1/c2")
    assert second is not None
    assert second.actor == "system"
    workspace.requests.answer(DANA, third.seq, decide_all(workspace.requests.read(third), False))
    await running
    tools = [each for each in workspace.sessions.state("alice", "scripted-1").messages if each.role == "tool"]
    assert [each.content for each in tools][:2] == ["yes", "yes"]


async def test_an_acp_clients_call_without_the_name_of_its_tool_is_approved_once(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The kind of a call is that of other tools too, also with the same arguments."""
    call = {"toolCallId": "c1", "title": "Run", "kind": "execute", "status": "pending"}
    given = {"toolCallId": "c1", "rawInput": {"command": "npm test"}}
    run = Run(workspace, tmp_path, [{"update": {"sessionUpdate": "tool_call", **call}}, {"ask": given}])
    running = asyncio.create_task(run.once())
    asked = await run.asked()
    with pytest.raises(GrantRefused):
        workspace.grants.make(DANA, asked.seq, GrantChoice("session", 5))
    workspace.requests.answer(DANA, asked.seq, decide_all(workspace.requests.read(asked), True))
    await running


def test_the_sentence_names_the_session(attached: Attached) -> None:
    hook = attached.call("npm test")
    made = attached.workspace.grants.make(DANA, attached.asked(1).seq, GrantChoice("session", 1))
    assert SESSION in made.message
    assert str(attached.project.resolve()) in made.message
    assert json.loads(attached.workspace.journal.content(made.seq) or "")["uses"] == 1
    attached.approve(attached.asked(1))
    assert attached.decision(hook) == "allow"
