"""An attached client tells of a limit in a hook or its transcript, and is woken at the reset if it can be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from clients.attached import SESSION, told
from clients.attending import attending, report, write_lines
from clients.test_parking import QUIET, add_budget, needs, tell
from clock import HOUR, JumpingClock
from people.conftest import DANA, close
from runtime.scripted import until
from watchroom import Json, Workspace
from watchroom.agents.clients import attendant
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.hook_answers import HookAnswer
from watchroom.errors import SignatureRequired
from watchroom.features.sessions.rows import Parking, parking_of
from watchroom.features.sessions.service import session_path
from watchroom.kernel.call_context import CallContext
from watchroom.model import MESSAGE, PAUSE, RESUME, timestamp

pytestmark = pytest.mark.sqlite("A server has its own clock.")
PATH = session_path("alice", SESSION)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    return JumpingClock(monkeypatch)


def parking(workspace: Workspace) -> Parking | None:
    head = workspace.journal.head("session", PATH)
    assert head is not None
    return parking_of(head)


def stop_failure(words: str) -> dict[str, Json]:
    return told("StopFailure", error="rate_limit", last_assistant_message=words)


def epoch(workspace: Workspace, seconds: float) -> str:
    return str(workspace.journal.now() // 10**9 + int(seconds))


async def parked(workspace: Workspace, client: str = "claude", seconds: float = 3600) -> Attachment:
    """A client whose turn a limit has ended."""
    attached = Attachment(workspace, "alice", client)
    await attached.handle(told("UserPromptSubmit", prompt="Go"))
    words = f"Claude AI usage limit reached|{epoch(workspace, seconds)}"
    await attached.handle(stop_failure(words))
    return attached


async def over_budget(workspace: Workspace) -> Attachment:
    """A client whose turn a limit has ended, and whose budget is used up."""
    attached = Attachment(workspace, "alice", "claude")
    await attached.handle(told("UserPromptSubmit", prompt="Go"))
    usage = {"input_tokens": 100, "output_tokens": 20}
    line: dict[str, Json] = {
        "type": "assistant",
        "message": {"id": "m1", "model": "m", "content": [], "usage": usage},
    }
    await attached.record_line(attached.sessions[SESSION], line)
    await attached.handle(stop_failure(f"Claude AI usage limit reached|{epoch(workspace, 3600)}"))
    add_budget(workspace)
    return attached


async def idle(attached: Attachment) -> asyncio.Task[HookAnswer]:
    """A hook that waits for something to arrive for the agent."""
    waiting = asyncio.create_task(attached.handle(told("Stop"), may_wait=True))
    await asyncio.sleep(QUIET)
    return waiting


@pytest.mark.parametrize("client", ["claude", "opencode"])
async def test_a_hook_tells_of_a_limit(workspace: Workspace, client: str) -> None:
    attached = await parked(workspace, client)
    found = parking(workspace)
    assert found is not None
    assert found.resets is not None
    assert 3595 * 10**9 < found.resets - workspace.journal.now() <= 3600 * 10**9
    assert [(each.kind, each.agent) for each in needs(workspace)] == [("parked", "alice")]
    # The end of the same turn changes nothing, and the next prompt ends the parking.
    await attached.handle(told("Stop"))
    assert parking(workspace) is not None
    await attached.handle(told("UserPromptSubmit", prompt="Again"))
    assert parking(workspace) is None
    assert needs(workspace) == []


async def test_a_hook_without_a_reset_says_that_it_is_unknown(workspace: Workspace) -> None:
    attached = Attachment(workspace, "alice", "claude")
    await attached.handle(told("UserPromptSubmit", prompt="Go"))
    await attached.handle(stop_failure("You've hit your limit · resets 3am"))
    found = parking(workspace)
    assert found is not None
    assert found.resets is None
    (need,) = needs(workspace)
    assert "leave" not in need.answers


async def test_another_error_of_the_server_ends_the_turn(workspace: Workspace) -> None:
    attached = Attachment(workspace, "alice", "claude")
    await attached.handle(told("UserPromptSubmit", prompt="Go"))
    await attached.handle(told("StopFailure", error="server_error", error_details="500"))
    assert parking(workspace) is None
    assert workspace.sessions.state("alice", SESSION).status == "idle"


def claude_line(workspace: Workspace, words: str, ago: float = 0) -> Mapping[str, Any]:
    return {
        "type": "assistant",
        "uuid": "u1",
        "isApiErrorMessage": True,
        "error": "rate_limit",
        "timestamp": timestamp(workspace.journal.now() - int(ago * 1e9)),
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": words}]},
    }


def codex_line(workspace: Workspace, words: str, ago: float = 0) -> Mapping[str, Any]:
    return {
        "type": "event_msg",
        "timestamp": timestamp(workspace.journal.now() - int(ago * 1e9)),
        "payload": {"type": "task_complete", "error": {"message": words, "codex_error_info": "other"}},
    }


@pytest.mark.parametrize(("client", "line"), [("claude", claude_line), ("codex", codex_line)])
async def test_a_transcript_tells_of_a_limit_once(workspace: Workspace, client: str, line: Any) -> None:
    attached = Attachment(workspace, "alice", client)
    await attached.handle(told("UserPromptSubmit", prompt="Go"))
    session = attached.sessions[SESSION]
    written = line(workspace, "You've hit your usage limit. Try again in 5 minutes.")
    assert not attached.shows_activity(written)
    await attached.record_line(session, written)
    found = parking(workspace)
    assert found is not None
    assert found.resets is not None
    last = session.last.seq
    # A second read of the line, and a hook about the same limit, add no row.
    await attached.record_line(session, written)
    await attached.handle(stop_failure("You've hit your usage limit."))
    assert session.last.seq == last
    assert len(needs(workspace)) == 1


NEXT_TURN: dict[str, dict[str, Any]] = {
    "claude": {"type": "user", "message": {"role": "user", "content": "Go on"}},
    "codex": {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "turn2"}},
}
SAID: dict[str, dict[str, Any]] = {
    "claude": {
        "type": "assistant",
        "message": {"id": "m1", "model": "m", "content": [{"type": "text", "text": "Well"}]},
    },
    "codex": {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Well"}],
        },
    },
}


@pytest.mark.parametrize(("client", "line"), [("claude", claude_line), ("codex", codex_line)])
@pytest.mark.parametrize("later", [NEXT_TURN, SAID], ids=["a prompt", "an answer"])
async def test_an_old_line_of_a_transcript_parks_nothing(
    workspace: Workspace, tmp_path: Path, client: str, line: Any, later: Mapping[str, Any]
) -> None:
    """The service reads a transcript from its start."""
    transcript = tmp_path / "transcript.jsonl"
    other = {**line(workspace, "another error"), "error": "server_error"}
    write_lines(transcript, line(workspace, "usage limit", 3600), other, later[client])
    await Attachment(workspace, "alice", client).handle(told("UserPromptSubmit", prompt="Go"))
    async with attending(workspace, client) as served:
        shown = told("MessageDisplay", transcript_path=str(transcript), message_id="m1", delta="Well")
        await report(workspace, served, shown)
        assert [*served.session_ids] == [SESSION]
    assert workspace.sessions.state("alice", SESSION).status == "running"
    assert not any(parking_of(row) for row in workspace.journal.history("session", PATH))


@pytest.mark.parametrize(("client", "line"), [("claude", claude_line), ("codex", codex_line)])
async def test_a_limit_counts_however_late_its_turn_is_recorded(
    workspace: Workspace, tmp_path: Path, client: str, line: Any
) -> None:
    """The service may be slower than the client, or the machine may sleep in between."""
    transcript = tmp_path / "transcript.jsonl"
    async with attending(workspace, client) as served:
        prompt = told("UserPromptSubmit", prompt="Go", transcript_path=str(transcript))
        await report(workspace, served, prompt)
        limit = line(workspace, "You've hit your usage limit. Try again in 5 minutes.", 60)
        write_lines(transcript, NEXT_TURN[client], SAID[client], limit)
        await until(lambda: parking(workspace) is not None)
    assert [each.kind for each in needs(workspace)] == ["parked"]


async def test_a_client_that_can_be_woken_continues_once_at_the_reset(
    workspace: Workspace, clock: JumpingClock
) -> None:
    attached = await parked(workspace)
    waiting = await idle(attached)
    tell(workspace, RESUME, at_reset=True)
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    await attached.check_reset(attached.sessions[SESSION])
    assert needs(workspace) == []
    clock.ahead = HOUR
    answer = await asyncio.wait_for(waiting, 20)
    assert (answer.status, answer.error.startswith("A rate or usage limit")) == (2, True)
    assert workspace.sessions.state("alice", SESSION).status == "running"
    # A wrong reset: the leave is used up.
    await attached.handle(stop_failure(f"Claude AI usage limit reached|{epoch(workspace, 60)}"))
    waiting = await idle(attached)
    clock.ahead = 3 * HOUR
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    assert [each.kind for each in needs(workspace)] == ["parked"]
    tell(workspace, RESUME)
    assert (await asyncio.wait_for(waiting, 20)).status == 2


async def test_the_hook_of_the_failed_turn_wakes_claude(workspace: Workspace, clock: JumpingClock) -> None:
    attached = Attachment(workspace, "alice", "claude")
    await attached.handle(told("UserPromptSubmit", prompt="Go"))
    failure = stop_failure(f"Claude AI usage limit reached|{epoch(workspace, 3600)}")
    waiting = asyncio.create_task(attached.handle(failure, may_wait=True))
    await until(lambda: parking(workspace) is not None)
    tell(workspace, RESUME, at_reset=True)
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    clock.ahead = HOUR
    assert (await asyncio.wait_for(waiting, 20)).status == 2


CONTINUATION = (
    "Your claude.ai usage limit has reset. Continue the task you were working on when the limit was reached; do"
    " not repeat work that is already complete."
)
"""The prompt that Claude Code 2.1.332 gives itself after a limit."""


def woken_by(hook: str, text: str) -> str:
    """The prompt with which Claude Code 2.1.332 reports ``text`` of the ``hook`` that started a turn."""
    return (
        "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\n"
        f'Stop hook blocking error from command "{hook}": {text}\n</system-reminder>'
    )


async def test_claude_does_not_continue_by_itself(workspace: Workspace, clock: JumpingClock) -> None:
    attached = await parked(workspace)
    waiting = await idle(attached)
    clock.ahead = HOUR
    own = told("UserPromptSubmit", prompt=CONTINUATION, prompt_id="p2")
    assert "block" in (await attached.handle(own)).dump()
    assert parking(workspace) is not None
    assert len(needs(workspace)) == 1
    # The hook still waits, and a leave continues the client once.
    tell(workspace, RESUME, at_reset=True)
    answer = await asyncio.wait_for(waiting, 20)
    assert answer.status == 2
    await attached.handle(told("UserPromptSubmit", prompt=woken_by("Stop", answer.error), prompt_id="p3"))
    newest = workspace.sessions.state("alice", SESSION).messages[-1]
    assert newest.content == answer.error
    assert "block" in (await attached.handle(own)).dump()
    assert workspace.sessions.state("alice", SESSION).status == "running"


async def test_claude_continues_by_itself_with_a_leave(workspace: Workspace, clock: JumpingClock) -> None:
    attached = await parked(workspace)
    tell(workspace, RESUME, at_reset=True)
    clock.ahead = HOUR
    own = told("UserPromptSubmit", prompt=CONTINUATION, prompt_id="p2")
    assert "block" not in (await attached.handle(own)).dump()
    assert parking(workspace) is None


async def test_a_restarted_service_wakes_the_client_once(workspace: Workspace, clock: JumpingClock) -> None:
    await parked(workspace)
    tell(workspace, RESUME, at_reset=True)
    again = Attachment(workspace, "alice", "claude")
    waiting = await idle(again)
    assert not waiting.done()
    clock.ahead = HOUR
    assert (await asyncio.wait_for(waiting, 20)).status == 2
    third = Attachment(workspace, "alice", "claude")
    waiting = await idle(third)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_client_that_cannot_be_woken_is_a_need_at_the_reset(
    workspace: Workspace, clock: JumpingClock
) -> None:
    attached = await parked(workspace)
    session = attached.sessions[SESSION]
    tell(workspace, RESUME, at_reset=True)
    await attached.check_reset(session)
    assert needs(workspace) == []
    clock.ahead = HOUR
    await attached.check_reset(session)
    await attached.check_reset(session)
    (need,) = needs(workspace)
    assert need.kind == "parked"
    found = parking(workspace)
    assert found is not None
    assert (found.held, found.resets) == ("client", None)


async def test_a_paused_client_is_not_woken(workspace: Workspace, clock: JumpingClock) -> None:
    attached = await parked(workspace)
    tell(workspace, RESUME, at_reset=True)
    tell(workspace, PAUSE)
    waiting = await idle(attached)
    clock.ahead = HOUR
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    await attached.check_reset(attached.sessions[SESSION])
    assert needs(workspace) == []
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_leave_does_not_end_a_pause(workspace: Workspace, clock: JumpingClock) -> None:
    attached = await parked(workspace)
    tell(workspace, PAUSE)
    tell(workspace, RESUME, at_reset=True)
    blocked = await attached.handle(told("UserPromptSubmit", prompt="Go"))
    assert "block" in blocked.dump()


async def test_a_client_over_its_budget_is_not_woken(workspace: Workspace, clock: JumpingClock) -> None:
    attached = await over_budget(workspace)
    tell(workspace, RESUME, at_reset=True)
    waiting = await idle(attached)
    clock.ahead = HOUR
    await until(lambda: "request" in [each.kind for each in needs(workspace)])
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_client_that_is_paused_before_its_budget_is_raised_is_not_woken(
    workspace: Workspace, clock: JumpingClock
) -> None:
    attached = await over_budget(workspace)
    tell(workspace, RESUME, at_reset=True)
    waiting = await idle(attached)
    clock.ahead = HOUR
    await until(lambda: "request" in [each.kind for each in needs(workspace)])
    (need,) = [each for each in needs(workspace) if each.kind == "request"]
    tell(workspace, PAUSE)
    answer = workspace.tools_for_human("ann").dispatch_tool_call
    assert answer("answer_request", {"request": need.since, "values": ["raise"]})["success"]
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_in_a_closed_workspace_only_a_signed_leave_counts(
    workspace: Workspace, clock: JumpingClock
) -> None:
    attached = await parked(workspace)
    close(workspace)
    with pytest.raises(SignatureRequired):
        tell(workspace, RESUME, at_reset=True)
    workspace.signing.signer = DANA
    call = CallContext("human:dana", RESUME)
    workspace.session_zone.control(call, "alice", None, "", at_reset=True)
    waiting = await idle(attached)
    assert not waiting.done()
    clock.ahead = HOUR
    assert (await asyncio.wait_for(waiting, 20)).status == 2


async def test_messages_of_agents_wait_while_a_client_is_parked(workspace: Workspace) -> None:
    attached = await parked(workspace)
    waiting = await idle(attached)
    workspace.messages.notify("alice", "News")
    await asyncio.sleep(QUIET)
    assert not waiting.done()
    workspace.session_zone.control(CallContext("human:ann", MESSAGE), "alice", None, "Try now")
    answer = await asyncio.wait_for(waiting, 20)
    assert "Try now" in json.dumps(answer.error)


async def test_the_service_says_when_a_client_cannot_be_woken(
    workspace: Workspace, clock: JumpingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attendant, "_RESET_SECONDS", 0.1)
    async with attending(workspace) as served:
        await report(workspace, served, told("UserPromptSubmit", prompt="Go"))
        failure = stop_failure(f"Claude AI usage limit reached|{epoch(workspace, 3600)}")
        await report(workspace, served, failure)
        tell(workspace, RESUME, at_reset=True)
        await asyncio.sleep(QUIET)
        assert needs(workspace) == []
        clock.ahead = HOUR
        await until(lambda: (parking(workspace) or Parking(0)).held == "client")
        assert [each.kind for each in needs(workspace)] == ["parked"]
