"""Calls of a client's own tools as hooks report them: each is one operation of the agent, refused ones too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from clients.attached import PATIENCE, AttachedClient, told
from clients.test_waiting import ASKING, DENYING, add_rules, requests, until
from projections.folding import folded
from watchroom import Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.features.overview.agents import AgentView
from watchroom.features.requests.rows import decide_all
from watchroom.features.sessions.rows import ClientCall, client_call
from watchroom.kernel.call_context import CallContext
from watchroom.model import CLIENT_DENIED

EDIT: Final[Mapping[str, Any]] = {
    "tool_name": "Edit",
    "tool_input": {"file_path": "/project/src/a.py", "old_string": "1", "new_string": "2"},
    "tool_use_id": "t0",
}
BASH: Final[Mapping[str, Any]] = {
    "tool_name": "Bash",
    "tool_input": {"command": "make deploy"},
    "tool_use_id": "t1",
}
RESULT: Final[Mapping[str, Any]] = {
    "type": "user",
    "message": {
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "denied", "is_error": True}]
    },
}
"""The line of the transcript about a call that was not made."""


def seen(workspace: Workspace) -> tuple[AgentView, list[ClientCall]]:
    """The agent alice, and her calls, oldest first."""
    workspace.flush()
    model = folded(workspace.journal)
    view = model.agent("alice")
    assert view is not None
    return view, [call for row in reversed(model.recent) if (call := client_call(row))]


def run(workspace: Workspace, play: Callable[[Attachment], Awaitable[None]], client: str = "claude") -> None:
    async def begin() -> None:
        attached = Attachment(workspace, "alice", client, hold_seconds=PATIENCE)
        await attached.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        await play(attached)

    asyncio.run(begin())


async def answer(workspace: Workspace, approved: bool, reason: str = "") -> None:
    await until(lambda: requests(workspace))
    asked = requests(workspace)[-1]
    decided = decide_all(workspace.requests.read(asked), approved, reason)
    await asyncio.to_thread(workspace.requests.answer, CallContext("human:ann"), asked.seq, decided)


@pytest.fixture
def workspace(root: Path) -> Any:
    with Workspace.open(root, agents=["alice"]) as opened:
        yield opened


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_an_edit_by_hooks_is_an_operation(workspace: Workspace, client: str) -> None:
    async def play(attached: Attachment) -> None:
        await attached.handle(told("PreToolUse", **EDIT))
        await attached.handle(told("PostToolUse", **EDIT, tool_response="ok"))

    run(workspace, play, client)
    view, calls = seen(workspace)
    assert [(each.tool, each.kind, each.paths, each.outcome) for each in calls] == [
        ("Edit", "edit", ("src/a.py",), "ok")
    ]
    assert (view.rows, view.refused, view.client_edits) == (1, 0, 1)


def test_a_call_that_a_rule_denies_is_refused_once(workspace: Workspace) -> None:
    add_rules(workspace, DENYING)

    async def play(attached: Attachment) -> None:
        said = await attached.handle(told("PreToolUse", **BASH))
        assert said.refusal == "policy_denied"
        await attached.record_line(next(iter(attached.sessions.values())), RESULT)

    run(workspace, play)
    view, calls = seen(workspace)
    assert [(each.about, each.outcome, each.error) for each in calls] == [
        ("make deploy", "denied", "policy_denied")
    ]
    assert calls[0].reason.startswith("Policy rule ")
    assert (view.rows, view.refused) == (1, 1)


def test_a_call_that_the_client_refuses_itself_is_one_operation(workspace: Workspace) -> None:
    refused = {**BASH, "tool_response": "<tool_use_error>Blocked: make deploy</tool_use_error>"}

    async def play(attached: Attachment) -> None:
        await attached.handle(told("PreToolUse", **EDIT))
        await attached.handle(told("PostToolUseFailure", **EDIT, error="No such text"))
        failed = {**EDIT, "tool_response": "<tool_use_error>No such text</tool_use_error>"}
        await attached.handle(
            told("PostToolBatch", tool_calls=[failed, refused, {**refused, "tool_use_id": ""}])
        )
        await attached.record_line(next(iter(attached.sessions.values())), RESULT)

    run(workspace, play)
    _, calls = seen(workspace)
    assert [(each.tool, each.about, each.outcome) for each in calls] == [
        ("Edit", "src/a.py", "failed"),
        ("Bash", "make deploy", "failed"),
    ]


def test_a_path_of_others_is_refused(root: Path, workspace: Workspace) -> None:
    async def play(attached: Attachment) -> None:
        path = str(root / "agents" / "bob" / "notes.md")
        await attached.handle(told("PreToolUse", **{**EDIT, "tool_input": {"file_path": path}}))

    run(workspace, play)
    view, calls = seen(workspace)
    assert [(each.outcome, each.error) for each in calls] == [("denied", "permission_denied")]
    assert view.client_edits == 0


@pytest.mark.parametrize("is_before", [True, False], ids=["rule", "client"])
def test_a_call_that_a_person_rejects_is_refused_once(workspace: Workspace, is_before: bool) -> None:
    if is_before:
        add_rules(workspace, ASKING)

    async def play(attached: Attachment) -> None:
        asking = asyncio.ensure_future(attached.handle(told("PreToolUse", **BASH)))
        if not is_before:
            await asking
            asked = {name: BASH[name] for name in ("tool_name", "tool_input")}
            asking = asyncio.ensure_future(attached.handle(told("PermissionRequest", **asked)))
        await answer(workspace, False, "Not on a Friday.")
        assert (await asking).refusal == "rejected"
        await attached.record_line(next(iter(attached.sessions.values())), RESULT)

    run(workspace, play)
    view, calls = seen(workspace)
    assert [(each.outcome, each.error, each.reason) for each in calls] == [
        ("denied", "rejected", "Not on a Friday.")
    ]
    assert view.refused == 1


def test_a_call_that_a_person_rejects_at_the_client_is_refused(workspace: Workspace) -> None:
    async def play(attached: Attachment) -> None:
        await attached.handle(told("PreToolUse", **BASH))
        asked = {name: BASH[name] for name in ("tool_name", "tool_input")}
        asking = asyncio.ensure_future(attached.handle(told("PermissionRequest", **asked)))
        await until(lambda: requests(workspace))
        await attached.record_line(next(iter(attached.sessions.values())), RESULT)
        await asking

    run(workspace, play)
    _, calls = seen(workspace)
    assert [(each.outcome, each.error) for each in calls] == [("denied", "rejected")]


def test_an_approved_call_is_no_refusal(workspace: Workspace) -> None:
    add_rules(workspace, ASKING)

    async def play(attached: Attachment) -> None:
        asking = asyncio.ensure_future(attached.handle(told("PreToolUse", **BASH)))
        await answer(workspace, True)
        assert (await asking).refusal == ""
        await attached.handle(told("PostToolUse", **BASH, tool_response={"stdout": "ok"}))

    run(workspace, play)
    view, calls = seen(workspace)
    assert [(each.outcome, each.kind) for each in calls] == [("ok", "command")]
    assert view.refused == 0


def test_a_result_in_the_transcript_alone_names_its_call(workspace: Workspace) -> None:
    async def play(attached: Attachment) -> None:
        await attached.handle(told("PreToolUse", **BASH))
        await attached.record_line(next(iter(attached.sessions.values())), RESULT)

    run(workspace, play)
    _, calls = seen(workspace)
    assert [(each.tool, each.about, each.outcome) for each in calls] == [("Bash", "make deploy", "failed")]


@pytest.mark.parametrize(
    "more",
    [
        {"tool_name": ["Edit"], "tool_input": {"file_path": "a"}},
        {"tool_name": "Edit", "tool_input": ["file_path"]},
        {"tool_name": "Edit", "tool_input": {"file_path": {"a": 1}, "edits": [1, None, {"old_string": 3}]}},
        {"tool_name": "Edit", "tool_input": {"file_path": "\ud800" * 50, "content": "\0" * 50}},
        {"tool_name": "Edit" * 10_000, "tool_input": {"file_path": "a/" * 50_000}},
        {"tool_name": "Bash", "tool_input": {"command": ["\x1b]0;x\x07"] * 1000}},
        {"tool_name": "Edit", "tool_input": {"paths": [f"f{n}" for n in range(5000)]}},
    ],
    ids=range(7),
)
def test_whatever_a_client_sends_the_operation_is_bounded(workspace: Workspace, more: Any) -> None:
    async def play(attached: Attachment) -> None:
        for number in range(3):
            event = {**more, "tool_use_id": f"t{number}"}
            await attached.handle(told("PreToolUse", **event))
            await attached.handle(told("PostToolUse", **event, tool_response={"structuredPatch": "x"}))

    run(workspace, play)
    seen(workspace)
    rows = workspace.journal.rows(limit=1000)
    assert max(len(row.detail_json) for row in rows) < 30_000
    assert max(len(row.message) for row in rows) <= 201


def test_hooks_of_their_own_processes_count_once(root: Path, workspace: Workspace) -> None:
    add_rules(workspace, DENYING)
    client = AttachedClient(root)
    client.hook("PreToolUse", **EDIT)
    client.hook("PostToolUse", **EDIT, tool_response="ok")
    client.hook("PostToolUse", **EDIT, tool_response="ok")
    client.hook("PreToolUse", **BASH)
    view, calls = seen(workspace)
    assert [(each.tool, each.outcome) for each in calls] == [("Edit", "ok"), ("Bash", "denied")]
    assert (view.rows, view.refused) == (2, 1)
    rows = workspace.journal.rows(limit=1000)
    assert [row.tool for row in rows if client_call(row)][-1] == CLIENT_DENIED
