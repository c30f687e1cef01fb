"""A call of an attached client waits for a pause, a budget or a person, and proceeds only if each said so.

The table is generated: every wait × every ending × strict or not. Each wait is set up alone, and once more with
a rule behind it that asks a person: whatever ends the first wait, that person is asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import product
from pathlib import Path
from threading import current_thread
from typing import Any, Final, NamedTuple

import pytest
from clients.attached import PATIENCE, told
from clock import HOUR, JumpingClock, JumpingMonotonicClock
from runtime.scripted import say
from watchroom import Json, Workspace
from watchroom.agents.clients import attachment, attendant
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.hook_answers import HookAnswer, is_allowed
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.transcripts import TranscriptFile
from watchroom.errors import JournalError
from watchroom.features.requests.rows import Answer, decide_all
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import ASK, CANCEL, PAUSE, RESUME, Row
from zones.test_open_requests import fill_open_requests

CALL: Final[Mapping[str, Any]] = {
    "tool_name": "Bash",
    "tool_input": {"command": "make deploy"},
    "tool_use_id": "t1",
}
ASKING: Final = '\n[[policy.rules]]\ntool = ["Bash"]\nverdict = "ask"\n'
DENYING: Final = '\n[[policy.rules]]\nname = "never"\ntool = ["Bash"]\nverdict = "deny"\n'
WAITS: Final = ("pause", "budget", "question")
ENDINGS: Final = ("released", "timeout", "error", "cancelled", "gone", "stopped", "other call")
SHORT: Final = 0.6
"""Seconds of a hold that runs out."""


class Case(NamedTuple):
    """A wait, how it ends, and whether the hook is strict."""

    wait: str
    ending: str
    is_strict: bool


CASES: Final = [Case(*each) for each in product(WAITS, ENDINGS, (False, True))]


def add_rules(workspace: Workspace, *rules: str) -> None:
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    config.write_text(config.read_text() + "".join(rules))
    workspace.scan()


def deny_some(workspace: Workspace) -> None:
    """Deny two commands by a rule before the one that asks about all."""
    denying = DENYING + 'command = ["make deploy", "make clean"]\n'
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    config.write_text(config.read_text().replace(ASKING, denying + ASKING))
    workspace.scan()


def permission(answer: Any) -> str:
    """What a hook says before a call: ``allow``, ``deny``, or empty if the client decides."""
    said = answer.said or {}
    return str(said.get("hookSpecificOutput", {}).get("permissionDecision", ""))


def requests(workspace: Workspace) -> list[Row]:
    return [row for row in workspace.journal.rows(limit=10_000) if row.tool == ASK and row.version == 1]


async def until(condition: Callable[[], object]) -> None:
    """Wait until a row makes ``condition`` true; each look is of the journal."""
    deadline = time.monotonic() + PATIENCE
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@contextmanager
def begun(root: Path, case: Case, *rules: str) -> Iterator[Workspace]:
    """A workspace in which the next call of alice has to wait."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, *rules, *([ASKING] if case.wait == "question" else []))
        yield workspace


async def prepare(workspace: Workspace, client: Attachment, case: Case) -> None:
    await client.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
    if case.wait == "pause":
        workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
    elif case.wait == "budget":
        workspace.budgets.set_budget(CallContext("human:ann"), "session", "", "steps", 1)


def is_waiting(workspace: Workspace, case: Case) -> bool:
    if case.wait == "pause":
        return any(row.detail.get("status") == "paused" for row in workspace.journal.rows(limit=10_000))
    return bool(requests(workspace))


def release(workspace: Workspace, case: Case) -> None:
    if case.wait == "pause":
        workspace.session_zone.control(CallContext("human:ann", RESUME), "alice", None, "")
        return
    asked = requests(workspace)[0]
    request = workspace.requests.read(asked)
    answer = Answer(values=("once",)) if case.wait == "budget" else decide_all(request, True)
    workspace.requests.answer(CallContext("human:ann"), asked.seq, answer)


def approve(workspace: Workspace, changed: str) -> None:
    """Approve of the call, with the command ``changed`` if it is not empty."""
    asked = requests(workspace)[0]
    request = workspace.requests.read(asked)
    edited = {request.calls[0].id: json.dumps({"command": changed})} if changed else None
    workspace.requests.answer(CallContext("human:ann"), asked.seq, decide_all(request, True, "", edited))


def break_journal(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have reads of ``journal`` fail from now on, but for those of its own threads: rows are still reported."""

    def failing(read: Callable[..., Any]) -> Callable[..., Any]:
        def fail(*args: object, **more: object) -> Any:
            if current_thread().name.startswith(("watchroom-tool", "asyncio", "MainThread")):
                raise JournalError(reason="the disk is gone")
            return read(*args, **more)

        return fail

    for name in ("version", "topic", "head", "heads", "last_note"):
        monkeypatch.setattr(journal, name, failing(getattr(journal, name)))


@asynccontextmanager
async def waiting(
    workspace: Workspace, client: Attachment, case: Case, call: Mapping[str, Json] = CALL
) -> AsyncIterator[asyncio.Task[Any]]:
    task = asyncio.ensure_future(client.handle(told("PreToolUse", **call)))
    await until(lambda: is_waiting(workspace, case) or task.done())
    yield task


async def end(
    workspace: Workspace,
    client: Attachment,
    case: Case,
    task: asyncio.Task[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """End the wait of ``task`` as ``case`` says."""
    if case.ending == "released":
        await asyncio.to_thread(release, workspace, case)
    elif case.ending == "error":
        with Workspace.open(workspace.root) as other:
            break_journal(workspace.journal, monkeypatch)
            # Whoever waits looks again.
            await asyncio.to_thread(release, other, case)
    elif case.ending in ("cancelled", "gone"):
        task.cancel()
    elif case.ending == "stopped":
        cancel = CallContext("human:ann", CANCEL)
        await asyncio.to_thread(workspace.session_zone.control, cancel, "alice", None, "")
    elif case.ending == "other call":
        # Another call with the same arguments ends, in the session and in a subagent.
        for more in ({"tool_use_id": "t2"}, {"tool_use_id": "t1", "agent_id": "sub"}):
            await client.handle(told("PostToolUse", **{**CALL, **more}, tool_response="ok"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)).replace(" ", "_"))
async def test_a_call_proceeds_only_if_every_check_said_so(
    root: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    """Alone, a wait that is not released keeps the call from being made; only of a pause that runs out the
    client decides, unless it is strict."""
    with begun(root, case) as workspace:
        client = Attachment(workspace, "alice", "claude", is_strict=case.is_strict, hold_seconds=hold(case))
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            await end(workspace, client, case, task, monkeypatch)
            answer = await outcome(task)
        monkeypatch.undo()
        if case.ending == "released":
            assert permission(answer) == ("allow" if case.wait == "question" else "")
        elif case.ending in ("cancelled", "gone"):
            assert answer is None, "no answer, so the hook program refuses the call"
        elif (
            case.wait == "pause" and case.ending in ("timeout", "other call", "error") and not case.is_strict
        ):
            assert permission(answer) == ""
            assert answer.said["systemMessage"]
        else:
            assert permission(answer) == "deny"


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.wait != "question" and case.ending in ("released", "timeout", "error")],
    ids=lambda case: "-".join(map(str, case)),
)
@pytest.mark.parametrize("rule", [ASKING, DENYING], ids=["asks", "denies"])
async def test_the_check_behind_a_wait_decides(
    root: Path, monkeypatch: pytest.MonkeyPatch, case: Case, rule: str
) -> None:
    with begun(root, case) as workspace:
        client = Attachment(workspace, "alice", "claude", is_strict=case.is_strict, hold_seconds=hold(case))
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            # The rule comes while the call waits already.
            await asyncio.to_thread(add_rules, workspace, rule)
            await end(workspace, client, case, task, monkeypatch)
            if case.ending == "released" and rule == ASKING:
                expected = 1 if case.wait == "pause" else 2
                await until(lambda: len(requests(workspace)) == expected or task.done())
                newest = requests(workspace)[-1]
                assert workspace.requests.read(newest).kind == "approve"
                no = decide_all(workspace.requests.read(newest), False, "no")
                await asyncio.to_thread(workspace.requests.answer, CallContext("human:ann"), newest.seq, no)
            answer = await outcome(task)
        monkeypatch.undo()
        assert permission(answer) == "deny"


def hold(case: Case) -> float:
    """Seconds that a hook may take: short where nothing else ends the wait."""
    return SHORT if case.ending in ("timeout", "other call") else PATIENCE


async def outcome(task: asyncio.Task[Any]) -> Any:
    """What the hook answers, None for one that was cancelled."""
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait({task})
    return None if task.cancelled() else task.result()


async def test_all_waits_of_a_hook_share_one_deadline(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that takes most of it, and a question."""
    clock = JumpingMonotonicClock(monkeypatch)
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        client = Attachment(workspace, "alice", "claude", hold_seconds=3000)
        case = Case("pause", "released", False)
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            clock.ahead = 2000
            await asyncio.to_thread(release, workspace, case)
            await until(lambda: requests(workspace) or task.done())
            (asked,) = requests(workspace)
            expires = workspace.requests.read(asked).expires
            assert expires is not None
            assert 900e9 < expires - asked.time <= 1000e9, "people see how long they have"
            assert not task.done()
            clock.ahead = 3000
            assert permission(await outcome(task)) == "deny"


@pytest.mark.sqlite("A server has its own clock.")
@pytest.mark.parametrize("is_strict", [False, True])
async def test_a_question_ends_when_the_clock_jumps_past_its_deadline(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_strict: bool
) -> None:
    case, clock = Case("question", "timeout", is_strict), JumpingClock(monkeypatch)
    with begun(root, case) as workspace:
        client = Attachment(workspace, "alice", "claude", is_strict=is_strict)
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            clock.ahead = HOUR
            answer = await outcome(task)
        assert permission(answer) == "deny"
        (asked,) = requests(workspace)
        late = say(workspace, "answer_request", request=asked.seq, approved=True)
        assert late["error"] == "request_expired"


async def test_a_hook_that_began_long_ago_has_no_time_left(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        client = Attachment(workspace, "alice", "claude")
        async with asyncio.timeout(PATIENCE):
            event = told("PreToolUse", **CALL)
            answer = await client.answer(event, client.deadline(event, 3600))
        assert permission(answer) == "deny"
        assert client.deadline(told("PreToolUse")) - time.monotonic() < 3600 - 20
        assert client.deadline(told("UserPromptSubmit")) - time.monotonic() < 60
        assert Attachment(workspace, "alice", "codex").deadline(told("SessionEnd")) - time.monotonic() < 3


async def test_a_hook_is_answered_in_time_while_a_transcript_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def read(file: TranscriptFile) -> list[Mapping[str, Json]]:
        released.wait(PATIENCE)
        return []

    monkeypatch.setattr(TranscriptFile, "read", read)
    monkeypatch.setattr(attendant, "SLACK_SECONDS", 0.1)
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        pid = os.getpid()
        process = ClientProcess(pid, workspace.platform.process_start(pid), workspace.platform)
        event = told("PreToolUse", **CALL, transcript_path="/project/t.jsonl")
        served = attendant.Attendant(workspace, ["alice"], "claude", process)
        served.begin()
        try:
            async with asyncio.timeout(PATIENCE):
                with workspace.messages.hand_over() as handover:
                    answer = await served.answer(event, handover, age=3600)
            assert not released.is_set()
        finally:
            released.set()
            await served.close()
        assert answer is not None
        assert answer.refusal == "expired"


async def test_a_pause_that_comes_while_a_person_decides_holds_the_call(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
        case = Case("question", "released", False)
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
            await asyncio.to_thread(release, workspace, case)
            await until(lambda: is_waiting(workspace, Case("pause", "", False)))
            assert not task.done()
            workspace.session_zone.control(CallContext("human:ann", RESUME), "alice", None, "")
            assert permission(await outcome(task)) == "allow"


@pytest.mark.parametrize("client_name", ["claude", "codex", "opencode", "gemini"])
@pytest.mark.parametrize("is_strict", [False, True])
async def test_a_call_that_nobody_can_be_asked_about_is_denied(
    root: Path, client_name: str, is_strict: bool
) -> None:
    """The agent has too many open requests. The client does not decide either."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        client = Attachment(workspace, "alice", client_name, is_strict=is_strict, hold_seconds=PATIENCE)
        await client.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        await asyncio.to_thread(fill_open_requests, workspace)
        await client.handle(told("PreToolUse", **CALL))
        answer = await client.handle(told("PermissionRequest", **CALL))
        decision = (answer.said or {})["hookSpecificOutput"]["decision"]  # type: ignore[call-overload, index]
        assert (decision["behavior"], answer.refusal) == ("deny", "too_many_requests")  # type: ignore[index, call-overload]
        assert "50 open requests" in answer.reason
        # A client may report it as ended.
        await client.handle(told("PostToolUse", **CALL, tool_response="ok"))
        await asyncio.to_thread(add_rules, workspace, ASKING)
        answer = await client.handle(told("PreToolUse", **{**CALL, "tool_use_id": "t2"}))
        assert (permission(answer), answer.refusal) == ("deny", "too_many_requests")
        await client.handle(told("Stop"))
        assert len(requests(workspace)) == 50


def stop_at_budget(workspace: Workspace) -> None:
    """The agent reaches a budget with another call, and a person stops it."""
    person = CallContext("human:ann")
    workspace.budgets.set_budget(person, "agent", "", "steps", 1)
    known = requests(workspace)
    assert workspace.budgets.hold_call("alice") is not None
    *_, asked = requests(workspace)
    assert asked not in known
    workspace.requests.answer(person, asked.seq, Answer(values=("stop",)))


@pytest.mark.parametrize("client_name", ["claude", "codex", "opencode", "gemini"])
@pytest.mark.parametrize("allowed_once", [False, True], ids=["", "once"])
async def test_a_stop_that_comes_while_a_person_decides_denies_the_call(
    root: Path, client_name: str, allowed_once: bool
) -> None:
    """Also if a person allowed this call over the budget before: the newest answer counts."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        client = Attachment(workspace, "alice", client_name, hold_seconds=PATIENCE)
        case = Case("question", "released", False)
        await prepare(workspace, client, case)
        if allowed_once:
            workspace.budgets.set_budget(CallContext("human:ann"), "agent", "", "steps", 1)
        async with waiting(workspace, client, case) as task:
            if allowed_once:
                await asyncio.to_thread(release, workspace, Case("budget", "released", False))
                await until(lambda: len(requests(workspace)) == 2 or task.done())
            approval = requests(workspace)[-1]
            await asyncio.to_thread(stop_at_budget, workspace)
            yes = decide_all(workspace.requests.read(approval), True)
            await asyncio.to_thread(workspace.requests.answer, CallContext("human:ann"), approval.seq, yes)
            answer = await outcome(task)
        assert (permission(answer), answer.refusal) == ("deny", "budget_reached")


@pytest.mark.parametrize("pauses", [False, True], ids=["", "paused"])
@pytest.mark.parametrize(
    ("changed", "is_allowed"), [("", False), ("make other", True), ("make clean", False)]
)
async def test_a_rule_that_comes_while_a_person_decides_counts(
    root: Path, changed: str, is_allowed: bool, pauses: bool
) -> None:
    """It is checked for the arguments that would run: those of the person, if the person changed them."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
        case = Case("question", "released", False)
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            if pauses:
                workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
            await asyncio.to_thread(deny_some, workspace)
            await asyncio.to_thread(approve, workspace, changed)
            if pauses:
                await until(lambda: is_waiting(workspace, Case("pause", "", False)))
                workspace.session_zone.control(CallContext("human:ann", RESUME), "alice", None, "")
            assert permission(await outcome(task)) == ("allow" if is_allowed else "deny")


@pytest.mark.parametrize("changed", ["", "make other"])
async def test_an_approved_call_is_not_made_in_a_pause_that_runs_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    clock = JumpingMonotonicClock(monkeypatch)
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        client = Attachment(workspace, "alice", "claude", hold_seconds=3000)
        case = Case("question", "released", False)
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
            await asyncio.to_thread(approve, workspace, changed)
            await until(lambda: is_waiting(workspace, Case("pause", "", False)))
            assert not task.done()
            clock.ahead = 3000
            assert permission(await outcome(task)) == "deny"


@pytest.mark.parametrize("runs", [False, True])
async def test_a_prompt_ends_the_questions_about_calls_that_do_not_run_any_more(
    root: Path, runs: bool
) -> None:
    """opencode also takes prompts while a call waits."""
    case = Case("question", "released", False)
    with begun(root, case) as workspace:
        client = Attachment(workspace, "alice", "opencode", hold_seconds=PATIENCE)
        await prepare(workspace, client, case)
        async with waiting(workspace, client, case) as task:
            running = [CALL["tool_use_id"]] if runs else []
            await client.handle(told("UserPromptSubmit", prompt="And then?", open_calls=running))
            if runs:
                approve(workspace, "")
            assert permission(await outcome(task)) == ("allow" if runs else "deny")
            ended = workspace.requests.ended(requests(workspace)[0].path)
            assert ended is not None
            assert (ended.answer is not None) == runs


async def test_a_stopped_agent_is_not_asked_about_any_more(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
        case = Case("question", "stopped", False)
        await client.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        await client.handle(told("PreToolUse", **CALL))
        asking = asyncio.ensure_future(client.handle(told("PermissionRequest", **CALL)))
        await until(lambda: is_waiting(workspace, case))
        workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
        said = (await outcome(asking)).said
        assert said["hookSpecificOutput"]["decision"]["behavior"] == "deny"
        ended = workspace.requests.ended(requests(workspace)[0].path)
        assert ended is not None
        assert ended.answer is None


@pytest.mark.parametrize("is_strict", [False, True])
async def test_an_error_leaves_no_rule_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_strict: bool
) -> None:
    """The journal fails before anything is checked."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, DENYING)
        client = Attachment(workspace, "alice", "claude", is_strict=is_strict)
        await client.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        break_journal(workspace.journal, monkeypatch)
        assert permission(await client.handle(told("PreToolUse", **CALL))) == "deny"
        read = {"tool_name": "Read", "tool_input": {"file_path": "/a"}, "tool_use_id": "t3"}
        assert permission(await client.handle(told("PreToolUse", **read))) == ("deny" if is_strict else "")
        own = {"file_path": str(Path(workspace.root, "collaborative/current/a.md"))}
        write = {"tool_name": "Write", "tool_input": own, "tool_use_id": "t4"}
        assert permission(await client.handle(told("PreToolUse", **write))) == "deny"
        monkeypatch.undo()


@pytest.mark.parametrize("is_strict", [False, True])
async def test_a_late_call_is_denied_although_its_question_cannot_be_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_strict: bool
) -> None:
    """The journal hangs at the deadline, so the answer of the rule is not known."""
    released = threading.Event()
    monkeypatch.setattr(attachment, "SLACK_SECONDS", 0.1)
    with Workspace.open(root, agents=["alice"]) as workspace:
        add_rules(workspace, ASKING)
        expire = workspace.requests.expire

        def hang(path: str) -> Any:
            released.wait(PATIENCE)
            return expire(path)

        monkeypatch.setattr(workspace.requests, "expire", hang)
        client = Attachment(workspace, "alice", "claude", is_strict=is_strict, hold_seconds=SHORT)
        event = told("PreToolUse", **CALL)
        try:
            answer = await client.answer(event, client.deadline(event))
        finally:
            released.set()
        assert permission(answer) == "deny"


@pytest.mark.parametrize("client_name", ["claude", "codex", "gemini", "opencode"])
async def test_a_call_without_a_session_waits_while_its_agent_is_paused(root: Path, client_name: str) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        client = Attachment(workspace, "alice", client_name, hold_seconds=PATIENCE)
        await prepare(workspace, client, Case("pause", "released", False))
        call = asyncio.ensure_future(client.handle({**told("PreToolUse", **CALL), "session_id": ""}))
        assert not (await asyncio.wait({call}, timeout=1.2))[0]
        await asyncio.to_thread(release, workspace, Case("pause", "released", False))
        assert permission(await outcome(call)) == ""
        workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
        short = Attachment(workspace, "alice", client_name, hold_seconds=SHORT)
        answer = await short.handle({**told("PreToolUse", **CALL), "session_id": ""})
        assert (permission(answer), answer.refusal) == ("deny", "agent_paused")


@pytest.mark.parametrize("client_name", ["claude", "codex", "gemini"])
async def test_a_message_begins_no_turn_during_a_pause(root: Path, client_name: str) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        client = Attachment(workspace, "alice", client_name, hold_seconds=PATIENCE)
        await prepare(workspace, client, Case("pause", "released", False))
        say(workspace, "send_message", to="alice", payload={"text": "Go on"})
        assert await client.handle(told("Stop")) == HookAnswer()
        await asyncio.to_thread(release, workspace, Case("pause", "released", False))
        answer = await client.handle(told("Stop"))
        assert "Go on" in answer.dump() + answer.error


async def test_a_call_of_a_closed_workspace_is_denied_or_undecided(root: Path) -> None:
    """Whatever it waited for, it is not allowed, and it does not wait forever."""
    for case in (
        Case("pause", "gone", False),
        Case("budget", "gone", False),
        Case("question", "gone", False),
    ):
        with begun(root / case.wait, case) as workspace:
            client = Attachment(workspace, "alice", "claude", is_strict=True, hold_seconds=2 * SHORT)
            await prepare(workspace, client, case)
            async with waiting(workspace, client, case) as task:
                await asyncio.to_thread(workspace.close)
                assert permission(await outcome(task)) == "deny", case


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_cancelled_agent_makes_no_call_until_it_is_prompted(root: Path, is_restarted: bool) -> None:
    """Also if its service was restarted, and another hook has recorded a step since."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        clients = [Attachment(workspace, "alice", "claude")]

        async def permitted(number: str) -> str:
            if is_restarted:
                clients.append(Attachment(workspace, "alice", "claude"))
            call = {**CALL, "tool_use_id": number}
            answer = await clients[-1].handle(told("PreToolUse", **call))
            await clients[-1].handle(told("PostToolUse", **call, tool_response="ok"))
            return permission(answer)

        await clients[-1].handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        await clients[-1].handle(told("PreToolUse", **CALL))
        workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
        await clients[-1].handle(told("PostToolUse", **CALL, tool_response="ok"))
        assert [await permitted("t2"), await permitted("t3")] == ["deny", "deny"]
        await clients[-1].handle(told("UserPromptSubmit", prompt="Go on", prompt_id="p2"))
        assert [await permitted("t4"), await permitted("t5")] == ["", ""]


async def test_one_answer_about_a_budget_releases_the_calls_that_wait_for_it(root: Path) -> None:
    """They share the question. The next call asks again."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
        case = Case("budget", "released", False)
        await prepare(workspace, client, case)

        def call(number: str) -> asyncio.Task[Any]:
            return asyncio.ensure_future(client.handle(told("PreToolUse", **{**CALL, "tool_use_id": number})))

        def are_waiting() -> bool:
            rows = workspace.journal.rows(limit=10_000)
            return sum(row.detail.get("status") == "waiting_for_human_input" for row in rows) >= 2

        held = [call("t1"), call("t2")]
        await until(are_waiting)
        assert len(requests(workspace)) == 1
        await asyncio.to_thread(release, workspace, case)
        assert [permission(await outcome(each)) for each in held] == ["", ""]
        last = call("t3")
        await until(lambda: len(requests(workspace)) == 2 or last.done())
        assert not last.done()
        last.cancel()
        await outcome(last)


class TestMatching:
    """Which call a permission is about."""

    async def test_the_end_of_another_call_approves_nothing(self, root: Path) -> None:
        sub = {"agent_id": "sub", "tool_use_id": "s1"}
        with Workspace.open(root, agents=["alice"]) as workspace:
            client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
            await client.handle(told("PreToolUse", **{**CALL, **sub}))
            await client.handle(told("PreToolUse", **CALL))
            asking = asyncio.ensure_future(
                client.handle(told("PermissionRequest", **{**CALL, "agent_id": "sub"}))
            )
            await until(lambda: requests(workspace))
            await client.handle(told("PostToolUse", **CALL, tool_response="ok"))
            (asked,) = requests(workspace)
            assert workspace.requests.ended(asked.path) is None
            await client.handle(told("Stop"))
            assert workspace.requests.ended(asked.path) is None, "the subagent goes on"
            # Its own end says that the client has decided.
            await client.handle(told("PostToolUse", **{**CALL, **sub}, tool_response="ok"))
            assert (await outcome(asking)).said is None
            ended = workspace.requests.ended(asked.path)
            assert ended is not None
            assert ended.row.actor == "human:at-alice"

    async def test_if_two_calls_fit_a_person_is_asked_and_neither_end_answers(self, root: Path) -> None:
        with Workspace.open(root, agents=["alice"]) as workspace:
            client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
            for own in ("t1", "t2"):
                await client.handle(told("PreToolUse", **{**CALL, "tool_use_id": own}))
            asking = asyncio.ensure_future(client.handle(told("PermissionRequest", **CALL)))
            await until(lambda: requests(workspace))
            (asked,) = requests(workspace)
            assert asked.path.rpartition("/")[2].startswith("ask-")
            await client.handle(told("PostToolUse", **CALL, tool_response="ok"))
            assert workspace.requests.ended(asked.path) is None
            # Both have ended: it was about one of them, and nobody has to decide any more.
            await client.handle(told("PostToolUse", **{**CALL, "tool_use_id": "t2"}, tool_response="ok"))
            assert (await outcome(asking)).said is None
            ended = workspace.requests.ended(asked.path)
            assert ended is not None
            assert (ended.row.actor, ended.answer) == ("system", None)

    async def test_calls_are_asked_about_in_their_order(self, root: Path) -> None:
        with Workspace.open(root, agents=["alice"]) as workspace:
            client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
            asking = []
            for own in ("t1", "t2"):
                await client.handle(told("PreToolUse", **{**CALL, "tool_use_id": own}))
                asking.append(asyncio.ensure_future(client.handle(told("PermissionRequest", **CALL))))
                await until(lambda: len(requests(workspace)) == len(asking))
            assert [row.path.rpartition("/")[2] for row in requests(workspace)] == ["t1", "t2"]
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def test_one_answer_allows_one_of_two_equal_calls(self, root: Path) -> None:
        """The client asks about both at the same moment."""
        with Workspace.open(root, agents=["alice"]) as workspace:
            client = Attachment(workspace, "alice", "claude", hold_seconds=10 * PATIENCE)
            for own in ("t1", "t2"):
                await client.handle(told("PreToolUse", **{**CALL, "tool_use_id": own}))
            asking = [
                asyncio.ensure_future(client.handle(told("PermissionRequest", **CALL))) for _ in range(2)
            ]
            await until(lambda: len(requests(workspace)) == 2)
            asked, other = requests(workspace)
            answer = decide_all(workspace.requests.read(asked), True)
            workspace.requests.answer(CallContext("human:ann"), asked.seq, answer)
            allowed, waiting = await asyncio.wait(
                asking, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
            )
            assert [is_allowed(each.result()) for each in allowed] == [True]
            assert workspace.requests.ended(other.path) is None
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def test_an_id_that_is_used_again_needs_an_approval_of_its_own(self, root: Path) -> None:
        with Workspace.open(root, agents=["alice"]) as workspace:
            add_rules(workspace, ASKING)
            client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
            case = Case("question", "released", False)
            async with waiting(workspace, client, case) as task:
                release(workspace, case)
                assert permission(await outcome(task)) == "allow"
            await client.handle(told("PostToolUse", **CALL, tool_response="ok"))
            again = {**CALL, "tool_input": {"command": "rm -rf /"}}
            task = asyncio.ensure_future(client.handle(told("PreToolUse", **again)))
            await until(lambda: len(requests(workspace)) == 2 or task.done())
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def test_a_call_that_waits_for_a_rule_is_not_approved_by_its_end(self, root: Path) -> None:
        """The client makes no call while its hook waits: who says that it has ended is somebody else."""
        with Workspace.open(root, agents=["alice"]) as workspace:
            add_rules(workspace, ASKING)
            client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
            case = Case("question", "other call", False)
            async with waiting(workspace, client, case) as task:
                await client.handle(told("PostToolUse", **CALL, tool_response="ok"))
                assert permission(await outcome(task)) == "deny"
