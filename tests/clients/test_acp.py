"""A client that speaks the Agent Client Protocol works as an agent: seen, asked for and stopped like any."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from child_processes import children
from watchroom import Workspace
from watchroom.agents.clients.acp import AcpTranslator, ReplayFilter, describe_error
from watchroom.agents.clients.acp_runner import AcpOptions, namespace_command, run_acp
from watchroom.agents.clients.adapter import AcpSupport
from watchroom.agents.clients.client_traces import find_terminal
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PlanUpdated,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TurnEnded,
    TurnFailed,
    TurnLimited,
    UsageAdded,
)
from watchroom.agents.clients.stopping import prove_paused
from watchroom.agents.clients.tmux_pane import TmuxPane
from watchroom.errors import ClientDoesNotAsk, ClientNotStarted, JournalError, WatchroomError
from watchroom.features.budgets.rows import usage_of
from watchroom.features.overview.snapshots import read_model
from watchroom.features.requests.rows import Answer, decide_all
from watchroom.features.sessions.rows import client_call
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.rules.details import StepDetail
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import CANCEL, PAUSE, RESUME, Json, Row
from zones.test_open_requests import fill_open_requests

PATIENCE = 30.0
SCRIPTED = Path(__file__).with_name("scripted_acp_agent.py")
PATH = "alice/scripted-1"
CALL = {"toolCallId": "c1", "title": "Write", "kind": "edit", "status": "pending"}
INPUT = {"file_path": "plan.md", "content": "new"}
DIFF = [{"type": "diff", "path": "plan.md", "oldText": "old\n", "newText": "new\n"}]


def says(text: str, message: str = "m1") -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_message_chunk", "messageId": message, "content": content}}


def deny_all(workspace: Workspace) -> None:
    """Add a rule that denies all calls."""
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    config.write_text(
        config.read_text() + '\n[[policy.rules]]\nname = "never"\ntool = ["*"]\nverdict = "deny"\n'
    )
    workspace.scan()


ASKS: list[dict[str, Any]] = [
    {"update": {"sessionUpdate": "tool_call", **CALL}},
    {"ask": {"toolCallId": "c1", "rawInput": INPUT, "content": DIFF}},
]


class Run:
    """A run of the scripted client as alice, and what it told."""

    def __init__(self, workspace: Workspace, folder: Path, *turns: list[dict[str, Any]]) -> None:
        self.workspace = workspace
        self.log = folder / "log.jsonl"
        script = folder / "script.json"
        script.write_text(json.dumps(turns))
        self.support = AcpSupport((sys.executable, str(SCRIPTED), str(script), str(self.log)), "default")
        self.folder = folder
        self.events: list[ClientEvent] = []
        self._changed = asyncio.Event()

    async def once(self, prompt: str = "Do it", *, resume: str = "") -> None:
        """Until its first turns are over."""
        await asyncio.wait_for(self._run(prompt, once=True, resume=resume), PATIENCE)

    def start(self, prompt: str = "Do it", *, resume: str = "") -> asyncio.Task[None]:
        return asyncio.create_task(self._run(prompt, once=False, resume=resume))

    async def _run(self, prompt: str, *, once: bool, resume: str) -> None:
        options = AcpOptions(str(self.folder), once=once, resume=resume)
        await run_acp(
            self.workspace, "alice", "scripted", self.support, options, prompt=prompt, on_event=self._take
        )

    def _take(self, event: ClientEvent) -> None:
        self.events.append(event)
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def asked(self, prefix: str = f"{PATH}/") -> Row:
        """The request at a path with this prefix that it has made, and waits for."""
        changes = self.workspace.journal.changes()
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    heads = self.workspace.journal.heads("request", prefix)
                    found = [row for row in heads if row.version == 1]
                    if found and (not prefix or self.status == "waiting_for_human_input"):
                        return found[0]
                    await asyncio.to_thread(changes.wait, 1.0)
        finally:
            changes.close()

    async def has_status(self, status: str) -> None:
        """Wait until the session has the ``status``."""
        changes = self.workspace.journal.changes()
        try:
            async with asyncio.timeout(PATIENCE):
                while self.status != status:
                    await asyncio.to_thread(changes.wait, 1.0)
        finally:
            changes.close()

    def sent(self, method: str) -> list[dict[str, Any]]:
        """What was sent to the client with this method."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [each.get("params", {}) for each in lines if each.get("method") == method]

    @property
    def status(self) -> str:
        head = self.workspace.journal.head("session", PATH)
        return "" if head is None else StepDetail.of(head).status


async def test_what_it_says_and_uses_is_its_session(workspace: Workspace, tmp_path: Path) -> None:
    usage = {"totalTokens": 1120, "inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 1000}
    cost = {
        "sessionUpdate": "usage_update",
        "used": 1,
        "size": 2,
        "cost": {"amount": 0.25, "currency": "USD"},
    }
    run = Run(workspace, tmp_path, [says("Hello "), says("there"), {"update": cost}, {"usage": usage}])
    await run.once()
    assert [each.text for each in run.events if isinstance(each, TextStreamed)] == ["Hello ", "there"]
    state = workspace.sessions.state("alice", "scripted-1")
    assert [message.content for message in state.messages] == ["Do it", "Hello there"]
    (used,) = [each for row in workspace.journal.history("session", PATH) if (each := usage_of(row))]
    assert (used.usage.input, used.usage.cache_read, used.usage.cost) == (100, 1000, 0.25)
    assert state.status == "done"
    assert run.sent("session/set_mode") == [{"sessionId": "scripted-1", "modeId": "default"}]


def costs(amount: float) -> list[dict[str, Any]]:
    """A turn of a client whose session costs ``amount`` so far, in US dollars."""
    cost = {
        "sessionUpdate": "usage_update",
        "used": 1,
        "size": 2,
        "cost": {"amount": amount, "currency": "USD"},
    }
    return [
        says("Hello"),
        {"update": cost},
        {"usage": {"totalTokens": 2, "inputTokens": 1, "outputTokens": 1}},
    ]


@pytest.mark.parametrize(("amount", "whole"), [(0.4, 0.4), (0.1, 0.35)], ids=["since its start", "anew"])
async def test_the_cost_of_a_resumed_session_is_counted_once(
    workspace: Workspace, tmp_path: Path, amount: float, whole: float
) -> None:
    await Run(workspace, tmp_path, costs(0.25)).once()
    await Run(workspace, tmp_path, costs(amount)).once("Go on", resume="scripted-1")
    assert workspace.sessions.state("alice", "scripted-1").spent.cost == pytest.approx(whole)


async def test_a_resumed_session_whose_recorded_cost_is_rounded_up_does_not_count_anew(
    workspace: Workspace, tmp_path: Path
) -> None:
    for resumed in ("", "scripted-1"):
        await Run(workspace, tmp_path, costs(0.0189062499999)).once("Go on", resume=resumed)
    assert workspace.sessions.state("alice", "scripted-1").spent.cost == pytest.approx(0.0189062499999)


async def test_what_each_model_used_is_told_as_well(workspace: Workspace, tmp_path: Path) -> None:
    counts = {"input_tokens": 100, "output_tokens": 20}
    quota = {"token_count": counts, "model_usage": [{"model": "gemini-x", "token_count": counts}]}
    await Run(workspace, tmp_path, [says("Hello"), {"_meta": {"quota": quota}}]).once()
    (used,) = [each for row in workspace.journal.history("session", PATH) if (each := usage_of(row))]
    assert (used.model, used.usage.input, used.usage.output) == ("gemini-x", 100, 20)


async def test_a_person_approves_of_its_call(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, ASKS)
    running = asyncio.create_task(run.once())
    asked = await run.asked()
    assert run.status == "waiting_for_human_input"
    request = workspace.requests.read(asked)
    arguments = json.loads(request.calls[0].arguments)
    assert arguments["file_path"] == "plan.md"
    assert "+new" in str(request.metadata["difference"])
    workspace.requests.answer(CallContext("human:ann"), asked.seq, decide_all(request, True))
    await running
    results = [
        each.content
        for each in workspace.sessions.state("alice", "scripted-1").messages
        if each.role == "tool"
    ]
    assert results == ["yes"]


async def test_an_id_that_is_used_again_needs_an_approval_of_its_own(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Some models number their calls anew in each turn."""
    run = Run(workspace, tmp_path, [*ASKS, *ASKS])
    running = asyncio.create_task(run.once())
    first = await run.asked()
    workspace.requests.answer(
        CallContext("human:ann"), first.seq, decide_all(workspace.requests.read(first), True)
    )
    changes = workspace.journal.changes()
    async with asyncio.timeout(PATIENCE):
        while len(paths := [row.path for row in workspace.journal.heads("request", f"{PATH}/")]) < 2:
            await asyncio.to_thread(changes.wait, 1.0)
    changes.close()
    (second,) = [path for path in paths if path != first.path]
    asked = workspace.journal.version("request", second, 1)
    assert asked is not None
    workspace.requests.answer(
        CallContext("human:ann"), asked.seq, decide_all(workspace.requests.read(asked), False)
    )
    await running
    answered = [json.loads(line) for line in run.log.read_text().splitlines()]
    chosen = [each["result"]["outcome"]["optionId"] for each in answered if each.get("id") == 1000]
    assert chosen == ["yes", "no"]


async def test_why_a_call_was_rejected_is_the_next_prompt(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, ASKS, [says("I see")])
    running = asyncio.create_task(run.once())
    asked = await run.asked()
    request = workspace.requests.read(asked)
    workspace.requests.answer(
        CallContext("human:ann"), asked.seq, decide_all(request, False, "Not before Friday")
    )
    await running
    assert [each["prompt"][0]["text"] for each in run.sent("session/prompt")] == [
        "Do it",
        "Not before Friday",
    ]
    last = workspace.journal.last_seq()
    (refused,) = workspace.journal.rows_before(last + 1, only=RowFilter(outcome="denied"))
    call = client_call(refused)
    assert call is not None
    assert (call.outcome, call.error) == ("denied", "rejected")


async def test_messages_are_its_next_prompts_and_wait_while_it_is_paused(
    workspace: Workspace, tmp_path: Path
) -> None:
    run = Run(workspace, tmp_path, [says("Done")])
    running = run.start()
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    person = workspace.tools_for_human("ann")
    zone = workspace.session_zone
    zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
    await run.until(lambda: "is_paused=True" in str(run.events))
    assert (
        person.dispatch_tool_call("send_message", {"to": "alice", "text": "And this"})["success"] is not None
    )
    zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    zone.control(CallContext("human:ann", "send_message"), "alice", None, "Then that")
    await run.until(lambda: sum(isinstance(each, TurnEnded) for each in run.events) >= 2)
    assert "Then that" in [each["prompt"][0]["text"] for each in run.sent("session/prompt")]
    zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    assert run.status == "cancelled"


async def test_a_turn_that_asks_nothing_is_paused_and_goes_on(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, [says("On and on"), {"loop": "session/cancel"}, says("One more")], [])
    running = run.start()
    await run.until(lambda: any(isinstance(each, TextStreamed) for each in run.events))
    zone = workspace.session_zone
    zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
    (proof,) = await asyncio.to_thread(prove_paused, workspace, ["alice"], patience=PATIENCE)
    assert proof.is_proven
    assert len(run.sent("session/cancel")) == 1
    zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await run.until(lambda: sum(isinstance(each, TurnEnded) for each in run.events) == 2)
    assert len(run.sent("session/prompt")) == 2
    zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


async def test_what_is_approved_while_it_is_paused_waits(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, ASKS)
    running = run.start()
    asked = await run.asked()
    zone = workspace.session_zone
    zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
    await run.until(lambda: "is_paused=True" in str(run.events))
    workspace.requests.answer(
        CallContext("human:ann"), asked.seq, decide_all(workspace.requests.read(asked), True)
    )
    await run.until(lambda: str(run.events).count("is_paused=True") == 2)
    (proof,) = await asyncio.to_thread(prove_paused, workspace, ["alice"], patience=PATIENCE)
    assert proof.is_proven
    assert not any(isinstance(each, CallFinished) for each in run.events)
    zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await run.until(lambda: any(isinstance(each, CallFinished) for each in run.events))
    zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


async def test_a_call_that_nobody_can_be_asked_about_is_rejected(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The agent has too many open requests. It reads why with its next prompt."""
    fill_open_requests(workspace)
    run = Run(workspace, tmp_path, ASKS, [says("I stop.")])
    await run.once()
    (result,) = results_of(workspace)
    assert json.loads(result)["error"] == "too_many_requests"
    assert "50 open requests" in run.sent("session/prompt")[1]["prompt"][0]["text"]
    (finished,) = [each for each in run.events if isinstance(each, CallFinished)]
    assert finished.refusal == "too_many_requests"


def stop_at_budget(workspace: Workspace) -> None:
    """The agent reaches a budget with another call, and a person stops it."""
    person = CallContext("human:ann")
    workspace.budgets.set_budget(person, "agent", "", "steps", 1)
    assert workspace.budgets.hold_call("alice") is not None
    (asked,) = [row for row in workspace.journal.heads("request", "alice/calls/") if row.version == 1]
    workspace.requests.answer(person, asked.seq, Answer(values=("stop",)))


def results_of(workspace: Workspace) -> list[str]:
    messages = workspace.sessions.state("alice", "scripted-1").messages
    return [str(each.content) for each in messages if each.role == "tool"]


@pytest.mark.parametrize("is_paused", [False, True])
async def test_an_approved_call_of_an_agent_that_was_stopped_meanwhile_is_refused(
    workspace: Workspace, tmp_path: Path, is_paused: bool
) -> None:
    """At a budget, before the approval or in a pause after it."""
    run = Run(workspace, tmp_path, ASKS)
    running = run.start()
    asked = await run.asked()
    zone = workspace.session_zone
    if is_paused:
        zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
        await run.until(lambda: "is_paused=True" in str(run.events))
    else:
        await asyncio.to_thread(stop_at_budget, workspace)
    workspace.requests.answer(
        CallContext("human:ann"), asked.seq, decide_all(workspace.requests.read(asked), True)
    )
    if is_paused:
        await run.until(lambda: str(run.events).count("is_paused=True") == 2)
        await asyncio.to_thread(stop_at_budget, workspace)
        zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    assert "yes" not in results_of(workspace)
    assert run.status == "cancelled"


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_call_that_was_allowed_once_over_a_budget_is_not_asked_about_it_again(
    workspace: Workspace, tmp_path: Path, is_stopped: bool
) -> None:
    """A stop that comes while the call waits for its approval counts."""
    person = CallContext("human:ann")
    second = [{kind: {**given, "toolCallId": "c2"}} for each in ASKS[1:] for kind, given in each.items()]
    run = Run(workspace, tmp_path, [*ASKS, *second])
    running = asyncio.create_task(run.once())

    def approve(asked: Row) -> None:
        workspace.requests.answer(person, asked.seq, decide_all(workspace.requests.read(asked), True))

    first = await run.asked()
    workspace.budgets.set_budget(person, "agent", "", "steps", 1)
    approve(first)
    for _ in range(2):
        budget = await run.asked(f"{PATH}/budget-")
        workspace.requests.answer(person, budget.seq, Answer(values=("once",)))
    asked = await run.asked(f"{PATH}/c2")
    if is_stopped:
        await asyncio.to_thread(stop_at_budget, workspace)
    approve(asked)
    await running
    assert (results_of(workspace) == ["yes", "yes"]) is not is_stopped
    assert len(list(workspace.journal.heads("request", f"{PATH}/budget-"))) == 2


async def test_a_call_whose_question_the_journal_refuses_is_rejected(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk. The client gets a decision, not an error that it may understand as it likes."""
    tried: list[str] = []

    def refuse(*arguments: Any, **more: Any) -> Any:
        tried.append("ask")
        raise JournalError(reason="the disk is full")

    monkeypatch.setattr(workspace.requests, "ask", refuse)
    run = Run(workspace, tmp_path, ASKS)
    await run.once()
    assert tried == ["ask"]
    (result,) = results_of(workspace)
    assert json.loads(result)["message"] == "cancelled"


async def test_the_question_of_a_client_that_dies_is_withdrawn(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, ASKS)
    running = run.start()
    asked = await run.asked()
    for process in children(str(SCRIPTED), are_all=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    await asyncio.wait({running}, timeout=PATIENCE)
    ended = workspace.requests.ended(asked.path)
    assert ended is not None
    assert ended.answer is None
    assert run.status == "error"


async def test_an_approval_after_the_agent_was_ended_makes_no_call(
    workspace: Workspace, tmp_path: Path
) -> None:
    run = Run(workspace, tmp_path, ASKS)
    running = run.start()
    asked = await run.asked()
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    with pytest.raises(WatchroomError):
        workspace.requests.answer(
            CallContext("human:ann"), asked.seq, decide_all(workspace.requests.read(asked), True)
        )
    await asyncio.wait_for(running, PATIENCE)
    assert "yes" not in results_of(workspace)
    assert run.status == "cancelled"


async def test_a_rule_that_comes_while_a_person_decides_counts(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, ASKS, [says("I stop.")])
    running = asyncio.create_task(run.once())
    asked = await run.asked()
    await asyncio.to_thread(deny_all, workspace)
    workspace.requests.answer(
        CallContext("human:ann"), asked.seq, decide_all(workspace.requests.read(asked), True)
    )
    await running
    messages = workspace.sessions.state("alice", "scripted-1").messages
    assert not any(each.content == "yes" for each in messages if each.role == "tool")
    assert "never" in run.sent("session/prompt")[1]["prompt"][0]["text"], "it is told by which rule"


async def test_an_endless_turn_is_ended_and_nothing_of_it_is_left(
    workspace: Workspace, tmp_path: Path
) -> None:
    mark = f"of-alice-{uuid4()}"
    child = [sys.executable, "-c", "import sys, time; time.sleep(600)", mark]
    run = Run(workspace, tmp_path, [{"spawn": child}, says("Looping"), {"loop": "never"}])
    running = run.start()
    await run.until(lambda: any(isinstance(each, TextStreamed) for each in run.events))
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    assert run.sent("session/cancel") == [{"sessionId": "scripted-1"}]
    assert run.status == "cancelled"
    if namespace_command():
        assert not left_of(mark)


async def test_the_plugin_of_a_client_is_off(workspace: Workspace, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    reading = asyncio.create_task(asyncio.to_thread(seen.read_text))
    command = ["sh", "-c", f'echo "$WATCHROOM_PLUGIN" >{seen}']
    running = Run(workspace, tmp_path, [{"spawn": command}, {"loop": "never"}]).start()
    assert await asyncio.wait_for(reading, PATIENCE) == "off\n"
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


async def test_a_client_that_dies_is_said_to_be_gone(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, [says("Hello"), {"exit": 3}])
    await asyncio.wait_for(run.start(), PATIENCE)
    ended = [each for each in run.events if isinstance(each, SessionEnded)]
    assert [each.outcome for each in ended] == ["error"]
    assert "status 3" in ended[0].reason
    assert run.status == "error"


LIMIT = {
    "code": -32603,
    "message": "usage limit reached",
    "data": {"resetsAt": "2026-11-28T15:00:00Z", "limits": {"weekly": 100}},
}
REASON = 'usage limit reached (resetsAt: 2026-11-28T15:00:00Z, limits: {"weekly": 100})'


def failures(run: Run) -> list[str]:
    limits = [each.limit.text for each in run.events if isinstance(each, TurnLimited)]
    return [each.reason for each in run.events if isinstance(each, TurnFailed)] + limits


def has_answered(run: Run, prompt: str) -> bool:
    """Whether a turn has ended with an answer since the client was given ``prompt``."""
    texts = [each.text if isinstance(each, PromptSubmitted) else "" for each in run.events]
    return prompt in texts and any(isinstance(each, TurnEnded) for each in run.events[texts.index(prompt) :])


def failed_needs(workspace: Workspace) -> list[str]:
    """What the needs for failed and parked sessions say."""
    model = read_model(workspace.journal, workspace.journal.last_seq())
    return [need.row.message for need in model.needs if need.kind in ("failed", "parked")]


async def test_a_limit_does_not_end_the_session_and_its_end_is_kept(
    workspace: Workspace, tmp_path: Path
) -> None:
    run = Run(workspace, tmp_path, [{"error": LIMIT}], [says("Done")])
    running = run.start()
    await run.until(lambda: failures(run) == [REASON])
    zone = workspace.session_zone
    await run.has_status("parked")
    assert failed_needs(workspace) == [REASON]
    zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    await run.has_status("idle")
    assert failed_needs(workspace) == []
    assert [each["prompt"][0]["text"] for each in run.sent("session/prompt")] == ["Do it", "Do it"]
    zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    assert run.status == "cancelled"


async def test_a_resume_after_a_failed_turn_ends_a_pause_too(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, [{"error": LIMIT}], [says("Done")])
    running = run.start()
    await run.until(lambda: failures(run) == [REASON])
    await run.has_status("parked")
    zone = workspace.session_zone
    zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
    await run.has_status("paused")
    zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    await run.has_status("idle")
    events = [each.type for each in workspace.sessions.state("alice", "scripted-1").events]
    assert events == ["rate_limited", "paused", "resumed", "llm_result"]
    zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal", "cancelled", "error"])
async def test_a_turn_without_an_answer_is_a_need_and_the_agent_goes_on(
    workspace: Workspace, tmp_path: Path, reason: str
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), {"stopReason": reason}], [says("Done")])
    running = run.start()
    await run.until(lambda: any(reason in each for each in failures(run)))
    await run.has_status("error")
    (line,) = failed_needs(workspace)
    assert "without an answer" in line
    workspace.session_zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    again = run.sent("session/prompt")[1]["prompt"][0]["text"]
    assert again.startswith("Your last turn ended without an answer.")
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


async def test_a_message_goes_on_after_a_limit_and_what_waited_is_not_lost(
    workspace: Workspace, tmp_path: Path
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), {"error": LIMIT}], [{"error": LIMIT}], [says("Done")])
    running = run.start()
    await run.until(lambda: len(failures(run)) == 1)
    zone = workspace.session_zone
    zone.control(CallContext("human:ann", "send_message"), "alice", None, "One")
    await run.until(lambda: len(failures(run)) == 2)
    zone.control(CallContext("human:ann", "send_message"), "alice", None, "Two")
    await run.until(lambda: has_answered(run, "Two"))
    sent = [block["text"] for each in run.sent("session/prompt") for block in each["prompt"]]
    assert sent == ["Do it", "One", "One", "Two"]
    zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


@pytest.mark.parametrize("step", [{"stopReason": "refusal"}, {"stopReason": "error"}])
async def test_a_run_of_one_turn_that_fails_ends_with_the_reason(
    workspace: Workspace, tmp_path: Path, step: dict[str, Any]
) -> None:
    run = Run(workspace, tmp_path, [step])
    await run.once()
    (ended,) = [each for each in run.events if isinstance(each, SessionEnded)]
    assert ended.outcome == "error"
    assert run.status == "error"
    (line,) = failed_needs(workspace)
    assert line == ended.reason


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "limit"),
        ("try later", "limit (try later)"),
        ({"details": "try later"}, "limit (details: try later)"),
        ({"resets_at": 1764342000}, "limit (resets_at: 2025-11-28T15:00:00.000Z)"),
        ({"retryAfter": 30}, "limit (retryAfter: 30)"),
        ([1, 2], "limit ([1, 2])"),
    ],
)
def test_what_an_error_adds_is_kept(data: Json, said: str) -> None:
    assert describe_error("limit", data) == said


async def test_a_session_goes_on_and_what_it_tells_again_is_no_second_row(
    workspace: Workspace, tmp_path: Path
) -> None:
    await Run(workspace, tmp_path, [says("One"), {"exit": 1}]).once()
    await Run(workspace, tmp_path, [says("Two", "m2")]).once("Go on", resume="scripted-1")
    said = [each.content for each in workspace.sessions.state("alice", "scripted-1").messages]
    assert said == ["Do it", "One", "Go on", "Two"]


async def test_a_pause_does_not_end_the_past_of_a_resumed_session(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A slow client tells the rest of the past when everything else is ready for its next prompt."""
    await Run(workspace, tmp_path, [says("One"), {"error": LIMIT}]).once()
    begin, end = tmp_path / "begin", tmp_path / "end"
    os.mkfifo(begin)
    os.mkfifo(end)
    late = {"begin": str(begin), "end": str(end), **says("From before")}
    run = Run(workspace, tmp_path, [{"late": late}, says("Two", "m2")])
    running = run.start("", resume="scripted-1")
    await run.until(lambda: failures(run) == [REASON])
    await asyncio.to_thread(begin.write_text, "Go on")
    await asyncio.to_thread(end.read_text)
    workspace.session_zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    await run.has_status("idle")
    said = workspace.sessions.state("alice", "scripted-1").messages
    assert [each.content for each in said if each.role == "assistant"] == ["One", "Two"]
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)


DONE = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "rawOutput": "ok"}
THOUGHT = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm"}}
PROMPT: dict[str, Any] = {
    "update": {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "Go on"}}
}
COMMANDS = {"update": {"sessionUpdate": "available_commands_update", "availableCommands": []}}
PLAN = {"sessionUpdate": "plan", "entries": [{"content": "Look", "priority": "low", "status": "completed"}]}
LATE_PAST: list[dict[str, Any]] = [
    {"update": PLAN},
    {"update": THOUGHT},
    says("\n\n", ""),
    {"update": {"sessionUpdate": "tool_call", **CALL}},
    {"update": DONE},
    says("Well", "m2"),
]
PAST = [says("One"), *LATE_PAST]


def reports(*past: dict[str, Any]) -> dict[str, Any]:
    """The step of a client that reports the ``past`` before its first prompt."""
    return {"past": [each["update"] for each in past]}


async def test_the_past_that_comes_after_a_prompt_is_no_second_row(
    workspace: Workspace, tmp_path: Path
) -> None:
    await Run(workspace, tmp_path, [*PAST, {"exit": 1}]).once()
    turn = [reports(says("One")), *LATE_PAST, says("Two", "m3")]
    run = Run(workspace, tmp_path, turn, [says("Two", "m4")])
    running = run.start("Go on", resume="scripted-1")
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    workspace.session_zone.control(CallContext("human:ann", "send_message"), "alice", None, "Again")
    await run.until(lambda: has_answered(run, "Again"))
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    said = [each.content for each in workspace.sessions.state("alice", "scripted-1").messages]
    assert said == ["Do it", "One", "", "ok", "Well", "Go on", "Two", "Again", "Two"]
    assert [each.text for each in run.events if isinstance(each, TextStreamed)] == ["Two", "Two"]
    assert not [each for each in run.events if isinstance(each, PlanUpdated)]


async def test_the_past_is_no_response_to_a_message(workspace: Workspace, tmp_path: Path) -> None:
    await Run(workspace, tmp_path, [*PAST, {"exit": 1}]).once()
    run = Run(workspace, tmp_path, [reports(says("One")), *LATE_PAST, {"exit": 1}])
    workspace.session_zone.control(CallContext("human:ann", "send_message"), "alice", None, "Go on")
    await asyncio.wait_for(run.start("", resume="scripted-1"), PATIENCE)
    assert [each.text for each in workspace.messages.find_waiting(PATH)] == ["Go on"]


@pytest.mark.parametrize(
    "reported",
    [[COMMANDS], [says("Other")], [says("Done.", ""), PROMPT, says("OK.", "")]],
    ids=["no messages", "other messages", "messages without ids"],
)
async def test_an_answer_that_repeats_the_past_is_new(
    workspace: Workspace, tmp_path: Path, reported: list[dict[str, Any]]
) -> None:
    await Run(workspace, tmp_path, [says("Done."), {"exit": 1}]).once()
    run = Run(workspace, tmp_path, [reports(*reported), says("Done.", "m2")])
    await run.once("Go on", resume="scripted-1")
    said = [each.content for each in workspace.sessions.state("alice", "scripted-1").messages]
    assert said == ["Do it", "Done.", "Go on", "Done."]
    assert [each.text for each in run.events if isinstance(each, TextStreamed)] == ["Done."]


def remove_past(past: ReplayFilter, *steps: dict[str, Any]) -> list[ClientEvent]:
    """The new events in ``steps``, after the first prompt."""
    translator = AcpTranslator()
    events = [event for each in steps for event in translator.translate(each["update"])]
    return [new for event in (*events, *translator.finish()) for new in past.remove_past(event)]


@pytest.mark.parametrize("told_again", [["One", "Two"], ["Two"], []], ids=["all", "the end", "nothing"])
def test_words_that_it_says_again_after_the_past_are_new(told_again: list[str]) -> None:
    past = ReplayFilter(["One", "Two"])
    for number, text in enumerate(told_again):
        past.skip(says(text, f"past-{number}")["update"])
    new = remove_past(past, says("One", "m1"), says("Two", "m2"))
    assert new == [each(text) for text in ("One", "Two") for each in (TextStreamed, MessageCompleted)]


def test_prompts_separate_messages_without_ids() -> None:
    past = ReplayFilter(["One", "Two", "Three", "Four"])
    for each in (says("One", ""), PROMPT, says("Two", "")):
        past.skip(each["update"])
    late = (PROMPT, says("Three", ""), PROMPT, says("Four", ""), PROMPT)
    assert remove_past(past, *late, says("Five", "")) == [TextStreamed("Five"), MessageCompleted("Five")]


def test_a_known_call_begins_the_past() -> None:
    past = ReplayFilter(["One"], ["c1"])
    past.skip(DONE)
    new = remove_past(past, says("One"), says("Two", "m2"))
    assert new == [TextStreamed("Two"), MessageCompleted("Two")]


def test_a_thought_after_the_past_is_new() -> None:
    past = ReplayFilter(["One", "Two"], ["c1"])
    past.skip(says("One")["update"])
    call = {"update": {**DONE, "toolCallId": "c2"}}
    new = remove_past(past, {"update": THOUGHT}, {"update": DONE}, {"update": THOUGHT}, call)
    assert [type(each) for each in new] == [MessageCompleted, CallStarted, CallFinished]


@pytest.mark.parametrize("answer", [["Do", "ing"], ["Do", "n"]], ids=["different end", "shorter"])
def test_an_answer_that_begins_like_the_past_is_streamed_from_its_start(answer: list[str]) -> None:
    past = ReplayFilter(["One", "Done."])
    past.skip(says("One")["update"])
    new = remove_past(past, *(says(text, "m2") for text in answer))
    assert new == [*(TextStreamed(text) for text in answer), MessageCompleted("".join(answer))]


async def test_what_does_not_ask_or_start_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, [])
    run.support = run.support._replace(mode="careful")
    with pytest.raises(ClientDoesNotAsk):
        await run.once()
    run.support = AcpSupport(("no-such-client-here",))
    with pytest.raises(ClientNotStarted):
        await run.once()


def configure(workspace: Workspace, text: str) -> None:
    config = Path(workspace.root, ".watchroom", "config.toml")
    config.write_text(f"{config.read_text()}\n{text}")
    workspace.scan()


def left_of(mark: str) -> list[psutil.Process]:
    """The processes that have ``mark`` in their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        arguments = list(process.info["cmdline"] or ())
        if (
            mark in arguments
            and process.info["status"] != psutil.STATUS_ZOMBIE
            and "bwrap" not in arguments[0]
        ):
            found.append(process)
    return found


@pytest.mark.skipif(
    not namespace_command(), reason="no process namespaces here: bubblewrap is to be installed"
)
def test_what_it_started_ends_with_the_runner_that_is_killed(workspace: Workspace, tmp_path: Path) -> None:
    mark = f"of-alice-{uuid4()}"
    child = [sys.executable, "-c", "import time; time.sleep(600)", mark]
    told = {"update": {"sessionUpdate": "tool_call", **CALL}}
    run = Run(workspace, tmp_path, [{"spawn": child}, says("Started"), told, {"loop": "never"}])
    workspace.close()
    command = [sys.executable, "-m", "watchroom_cli.main", "run", "claude", workspace.root]
    start = " ".join(run.support.command)
    runner = subprocess.Popen(
        [*command, "--agent", "alice", "--command", start, "Do it"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    assert runner.stdout is not None
    assert runner.stdout.readline() == "Started\n"
    children = left_of(mark)
    assert children
    os.kill(runner.pid, signal.SIGKILL)
    runner.communicate()
    assert psutil.wait_procs(children, PATIENCE)[1] == []


async def test_the_pane_in_which_it_was_started_is_recorded(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/s,1,0")
    monkeypatch.setenv("TMUX_PANE", "%3")
    await Run(workspace, tmp_path, [says("Done")]).once()
    trace = find_terminal(workspace, PATH)
    assert trace is not None
    assert trace.pane == TmuxPane("/tmp/s", "%3")


@pytest.mark.parametrize("choice", ["once", "stop"])
async def test_a_budget_that_is_used_up_holds_its_next_prompt(
    workspace: Workspace, tmp_path: Path, choice: str
) -> None:
    configure(workspace, "[budgets.agent]\ncost = 0.05\n")
    cost = {
        "sessionUpdate": "usage_update",
        "used": 1,
        "size": 2,
        "cost": {"amount": 0.06, "currency": "USD"},
    }
    usage = {"totalTokens": 10, "inputTokens": 5, "outputTokens": 5}
    run = Run(workspace, tmp_path, [says("One"), {"update": cost}, {"usage": usage}], [says("Two", "m2")])
    running = run.start()
    await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
    workspace.session_zone.control(CallContext("human:ann", "send_message"), "alice", None, "Go on")
    asked = await run.asked("")
    assert len(run.sent("session/prompt")) == 1
    workspace.requests.answer(CallContext("human:ann"), asked.seq, Answer(values=(choice,)))
    if choice == "once":
        await run.until(lambda: sum(isinstance(each, TurnEnded) for each in run.events) == 2)
        workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    assert len(run.sent("session/prompt")) == (2 if choice == "once" else 1)
    assert run.status == "cancelled"


def test_a_message_without_an_end_is_kept_in_pieces() -> None:
    translator = AcpTranslator()
    piece = says("x" * 100_000)["update"]
    told = [event for _ in range(20) for event in translator.translate(piece)]
    whole = [event for event in told if isinstance(event, MessageCompleted)]
    assert whole
    assert all(len(event.text) <= 1_000_000 for event in whole)
    rest = [event for event in translator.finish() if isinstance(event, MessageCompleted)]
    assert sum(len(event.text) for event in (*whole, *rest)) == 2_000_000


@pytest.mark.parametrize(
    "amount", [10**400, float("inf"), float("nan"), True, "1"], ids=["huge", "inf", "nan", "true", "text"]
)
def test_a_price_that_nobody_pays_is_none(amount: Json) -> None:
    translator = AcpTranslator()
    translator.translate({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}})
    ended = translator.end_turn({"usage": {"inputTokens": 10**400}})
    (used,) = (event.used for event in ended if isinstance(event, UsageAdded))
    assert (used.input, used.cost, used.priced_by) == (2**53, 0, "")
