"""The clock jumps while a person is asked: the need, the answer and the agent that waits agree all the time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from clock import HOUR, JumpingClock
from runtime.scripted import at_work, say
from runtime.weather import Calls, call, calling
from runtime.working import ASK, SAYS, asked_in, chat, results
from watchroom import Agent, Workspace
from watchroom.features.overview.model import urgent_needs
from watchroom.features.overview.snapshots import read_model
from watchroom.features.requests.rows import Answer, Request
from watchroom.features.sessions.runtime import RuntimeConfig
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.platform.sandbox.probe import SandboxProbe

pytestmark = pytest.mark.sqlite("A server has its own clock.")
PATH = "alice/s1/1"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    return JumpingClock(monkeypatch)


def needs(workspace: Workspace) -> list[str]:
    model = read_model(workspace.journal, workspace.journal.last_seq())
    return [need.kind for need in urgent_needs(model, workspace.journal.now())]


async def test_an_agent_goes_on_when_the_clock_jumps_past_its_deadline(
    workspace: Workspace, clock: JumpingClock
) -> None:
    tool = Calls()
    agent = chat(calling(call("tool")), SAYS, tools={"tool": tool}, policies=ASK)
    config = RuntimeConfig(ask_timeout=600)
    async with workspace.sessions.begin("alice", agent, config) as session, at_work(session) as run:
        number = await asked_in(workspace, session)
        clock.ahead = HOUR
        state = await run
        answered = say(workspace, "answer_request", request=number, approved=True)
    assert answered["error"] == "request_expired"
    assert (state.status, tool.given) == ("done", [])
    assert results(state)["call_1"]["error"] == "no_answer"
    assert needs(workspace) == ["expired"]


async def test_an_agent_waits_no_longer_when_the_clock_is_set_back(
    workspace: Workspace, clock: JumpingClock
) -> None:
    tool = Calls()
    agent = chat(calling(call("tool")), SAYS, tools={"tool": tool}, policies=ASK)
    config = RuntimeConfig(ask_timeout=1)
    async with workspace.sessions.begin("alice", agent, config) as session, at_work(session) as run:
        number = await asked_in(workspace, session)
        clock.ahead = -HOUR
        state = await run
    assert say(workspace, "answer_request", request=number, approved=True)["error"] == "request_expired"
    assert (state.status, tool.given) == ("done", [])


async def test_an_answer_within_the_time_that_is_left_counts_after_a_jump(
    workspace: Workspace, clock: JumpingClock
) -> None:
    tool = Calls()
    agent = chat(calling(call("tool")), SAYS, tools={"tool": tool}, policies=ASK)
    config = RuntimeConfig(ask_timeout=2 * 3600)
    async with workspace.sessions.begin("alice", agent, config) as session, at_work(session) as run:
        number = await asked_in(workspace, session)
        clock.ahead = HOUR
        assert needs(workspace) == ["request"]
        assert say(workspace, "answer_request", request=number, approved=True)["success"]
        state = await run
    assert (state.status, len(tool.given)) == ("done", 1)


def test_a_refused_answer_ends_the_request_for_all(workspace: Workspace, clock: JumpingClock) -> None:
    """Nobody has noticed the jump but the person's process; then the clock is set back."""
    request = Request("prompt", "Which?", expires=workspace.journal.now() + 600 * 10**9)
    number = workspace.requests.ask(CallContext("alice"), PATH, request).seq
    clock.ahead = HOUR
    assert needs(workspace) == []
    assert say(workspace, "answer_request", request=number, text="Köln")["error"] == "request_expired"
    clock.ahead = 0
    ended = workspace.requests.ended(PATH)
    assert ended is not None
    assert ended.answer == Answer(expired=True)
    assert needs(workspace) == ["expired"]
    assert say(workspace, "answer_request", request=number, text="Köln")["error"] == "request_expired"


def test_a_jump_that_nobody_acted_on_changes_nothing(workspace: Workspace, clock: JumpingClock) -> None:
    request = Request("prompt", "Which?", expires=workspace.journal.now() + 600 * 10**9)
    number = workspace.requests.ask(CallContext("alice"), PATH, request).seq
    clock.ahead = HOUR
    assert needs(workspace) == []
    clock.ahead = 0
    assert needs(workspace) == ["request"]
    assert say(workspace, "answer_request", request=number, text="Köln")["success"]
    assert workspace.requests.expire(PATH).answer == Answer(text="Köln")


def test_after_its_deadline_a_request_that_was_answered_names_who_answered(
    workspace: Workspace, clock: JumpingClock
) -> None:
    request = Request("prompt", "Which?", expires=workspace.journal.now() + 600 * 10**9)
    number = workspace.requests.ask(CallContext("alice"), PATH, request).seq
    assert say(workspace, "answer_request", by="eve", request=number, text="Köln")["success"]
    clock.ahead = HOUR
    late = say(workspace, "answer_request", request=number, text="Bonn")
    assert late["error"] == "request_closed"
    assert "human:eve" in late["message"]


def test_a_command_without_sandbox_is_refused_when_the_clock_jumps(
    root: Path, tmp_path: Path, clock: JumpingClock
) -> None:
    with Workspace.open(root, sandbox=SandboxProbe((), False)) as workspace:
        config = Path(workspace.root, CONTROL, CONFIG_PATH)
        config.write_text('unfenced_commands = "ask"\n' + config.read_text())
        workspace.scan()
        task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "one")
        workspace.register([Agent("alice", task=task.id)])
        with ThreadPoolExecutor(1) as thread, closing(workspace.journal.changes()) as changes:
            alice = workspace.tools("alice")
            running = thread.submit(alice.dispatch_tool_call, "run_command", {"command": "touch made"})
            while not needs(workspace):
                changes.wait(1.0)
            clock.ahead = HOUR
            assert running.result()["error"] == "command_rejected"
        assert needs(workspace) == ["expired"]
        assert not (tmp_path / "one" / "made").exists()
