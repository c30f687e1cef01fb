"""What an attachment keeps of its client, however long that runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from clients.attached import SESSION, told
from watchroom import Json, Workspace
from watchroom.agents.clients import attachment
from watchroom.agents.clients.attachment import Attachment
from watchroom.kernel.call_context import CallContext
from watchroom.model import PAUSE, RESUME


def test_sessions_that_are_forgotten_go_on_with_their_rows(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment, "_MAX_SESSIONS", 3)

    async def run(attached: Attachment) -> None:
        for number in range(5):
            own = {"session_id": f"s{number}", "cwd": "/project"}
            await attached.handle({"hook_event_name": "UserPromptSubmit", "prompt": "Go", **own})
            if number % 2:
                await attached.handle({"hook_event_name": "SessionEnd", "reason": "clear", **own})
        assert [*attached.sessions] == ["s0", "s2", "s4"]
        await attached.handle({"hook_event_name": "UserPromptSubmit", "prompt": "On", "session_id": "s1"})
        assert len(attached.sessions) == 3

    with Workspace.open(root, agents=["alice"]) as workspace:
        asyncio.run(run(Attachment(workspace, "alice", "claude")))
        state = workspace.sessions.state("alice", "s1")
        assert [each.content for each in state.messages] == ["Go", "On"]


def test_controls_that_come_later_are_seen(root: Path) -> None:
    async def run(workspace: Workspace) -> list[bool]:
        attached = Attachment(workspace, "alice", "claude")
        blocked = []
        for control in (None, PAUSE, RESUME, PAUSE):
            if control is not None:
                workspace.session_zone.control(CallContext("human:ann", control), "alice", None, "")
            said = await attached.handle(told("UserPromptSubmit", prompt="Go"))
            blocked.append((said.dump() or "").find("block") >= 0)
        return blocked

    with Workspace.open(root, agents=["alice"]) as workspace:
        assert asyncio.run(run(workspace)) == [False, True, False, True]


def test_a_request_of_codex_that_is_told_twice_counts_once(root: Path) -> None:
    used = {"input_tokens": 100, "cached_input_tokens": 10, "output_tokens": 20}
    request = told("PostModelRequest", turn_id="t1", token_usage=used)
    call = {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "c1", "turn_id": "t1"}

    async def run(attached: Attachment) -> None:
        for event in (
            request,
            request,
            told("PreToolUse", **call),
            told("PostToolUse", **call, tool_response="ok"),
            request,
        ):
            await attached.handle(event)

    with Workspace.open(root, agents=["alice"]) as workspace:
        asyncio.run(run(Attachment(workspace, "alice", "codex")))
        spent = workspace.sessions.state("alice", SESSION).spent
        assert (spent.input_tokens, spent.cache_read_tokens, spent.output_tokens) == (180, 20, 40)


def test_messages_that_never_end_are_forgotten_and_none_is_told_in_part(root: Path) -> None:
    def shown(message: str, index: int, delta: str, *, final: bool = False) -> dict[str, Json]:
        return told("MessageDisplay", message_id=message, index=index, delta=delta, final=final)

    async def run(attached: Attachment) -> None:
        for event in (
            shown("first", 0, "All "),
            *(shown(f"endless {number}", 0, "x") for number in range(100)),
            shown("first", 1, "of it.", final=True),
            shown("large", 0, "y" * 1_000_000),
            shown("large", 1, "y", final=True),
            shown("last", 0, "All "),
            shown("last", 1, "of this.", final=True),
        ):
            await attached.handle(event)

    with Workspace.open(root, agents=["alice"]) as workspace:
        asyncio.run(run(Attachment(workspace, "alice", "claude")))
        state = workspace.sessions.state("alice", SESSION)
        assert [each.content for each in state.messages] == ["All of this."]
