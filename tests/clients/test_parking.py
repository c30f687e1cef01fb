"""A rate limit parks a client's session: with, without and with a wrong reset time, and after a kill."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clients.test_acp import PATIENCE, Run, says
from clock import HOUR, JumpingClock
from watchroom import Workspace
from watchroom.agents.clients.events import SessionEnded, TurnEnded, TurnLimited
from watchroom.features.overview.model import Need, urgent_needs
from watchroom.features.overview.snapshots import read_model
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import CANCEL, MESSAGE, PAUSE, RESUME

pytestmark = pytest.mark.sqlite("A server has its own clock.")
QUIET = 0.9
"""Seconds in which a clock that jumped would be noticed."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    return JumpingClock(monkeypatch)


def limit(workspace: Workspace, seconds: float | None = 3600) -> dict[str, Any]:
    """A turn that a limit ends. ``seconds``: to the reset, None if it is not given."""
    data = {}
    if seconds is not None:
        reset = datetime.fromtimestamp(workspace.journal.now() / 1e9 + seconds, UTC)
        data = {"resetsAt": reset.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"error": {"code": -32603, "message": "usage limit reached", "data": data}}


def add_budget(workspace: Workspace) -> None:
    """Limit each agent to 100 tokens."""
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    config.write_text(config.read_text() + "\n[budgets.agent]\ntokens = 100\n")
    workspace.scan()


def tell(workspace: Workspace, tool: str, text: str = "", *, at_reset: bool = False) -> None:
    workspace.session_zone.control(CallContext("human:ann", tool), "alice", None, text, at_reset=at_reset)


def needs(workspace: Workspace) -> list[Need]:
    model = read_model(workspace.journal, workspace.journal.last_seq())
    return [*urgent_needs(model, workspace.journal.now())]


def needs_after_loss(workspace: Workspace) -> list[Need]:
    """The needs once the dead process is recorded."""
    workspace.record_lost_processes()
    return needs(workspace)


def prompts(run: Run) -> list[str]:
    return [each["prompt"][0]["text"] for each in run.sent("session/prompt")]


def limits(run: Run) -> int:
    return sum(isinstance(each, TurnLimited) for each in run.events)


@asynccontextmanager
async def at_work(run: Run, prompt: str = "Do it", *, resume: str = "") -> AsyncIterator[None]:
    """Within the context the client runs, and is killed at the end as by a signal."""
    working = run.start(prompt, resume=resume)
    try:
        yield
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_known_reset_is_one_need_and_resumes_once_with_leave(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), limit(workspace)], [says("Done")])
    async with at_work(run):
        await run.has_status("parked")
        (need,) = needs(workspace)
        assert (need.kind, need.agent, need.answers[0]) == ("parked", "alice", "leave")
        await asyncio.sleep(QUIET)
        tell(workspace, RESUME, at_reset=True)
        assert needs(workspace) == []
        await asyncio.sleep(QUIET)
        assert len(prompts(run)) == 1
        clock.ahead = HOUR
        await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
        await run.has_status("idle")
        clock.ahead = 3 * HOUR
        await asyncio.sleep(QUIET)
        assert prompts(run)[1].startswith("A rate or usage limit interrupted you")
        assert len(prompts(run)) == 2
    assert needs(workspace) == []


async def test_a_limit_before_any_answer_repeats_the_prompt(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [limit(workspace)], [says("Done")])
    async with at_work(run):
        await run.has_status("parked")
        tell(workspace, RESUME, at_reset=True)
        clock.ahead = HOUR
        await run.has_status("idle")
        assert prompts(run) == ["Do it", "Do it"]


async def test_without_a_reset_nothing_is_resumed_by_itself(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [limit(workspace, None)], [says("Done")])
    async with at_work(run):
        await run.has_status("parked")
        (need,) = needs(workspace)
        assert (need.kind, need.answers[0]) == ("parked", "resume")
        clock.ahead = 24 * HOUR
        await asyncio.sleep(QUIET)
        assert len(prompts(run)) == 1
        tell(workspace, RESUME)
        await run.has_status("idle")
    assert len(prompts(run)) == 2


async def test_a_wrong_reset_parks_again_with_one_need_and_no_loop(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [limit(workspace)], [limit(workspace, 7200)], [says("Done")])
    async with at_work(run):
        await run.has_status("parked")
        tell(workspace, RESUME, at_reset=True)
        clock.ahead = HOUR
        await run.until(lambda: limits(run) == 2)
        await run.has_status("parked")
        clock.ahead = 5 * HOUR
        await asyncio.sleep(QUIET)
        assert len(prompts(run)) == 2
        assert [each.kind for each in needs(workspace)] == ["parked"]
        tell(workspace, RESUME)
        await run.has_status("idle")
    assert len(prompts(run)) == 3


@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_run_that_was_killed_is_parked_and_resumed_once(
    workspace: Workspace, root: Path, tmp_path: Path, clock: JumpingClock, *, is_reset: bool
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), limit(workspace)], [says("Done")])
    await kill_when_parked(run)
    workspace.close()
    with Workspace.open(root, create=False) as again:
        (need,) = needs_after_loss(again)
        assert need.kind == "parked"
        assert need.hint.endswith("--resume scripted-1")
        tell(again, RESUME, at_reset=True)
        if is_reset:
            clock.ahead = HOUR
        turns = Run(again, tmp_path, [says("Done")])
        turns.log.write_text("")
        async with at_work(turns, "", resume="scripted-1"):
            if not is_reset:
                await asyncio.sleep(QUIET + 1)
                assert turns.status == "parked"
                assert prompts(turns) == []
                clock.ahead = HOUR
            await turns.has_status("idle")
        assert len(prompts(turns)) == 1
        # Another process does not use the leave again.
        later = Run(again, tmp_path, [says("Done")])
        later.log.write_text("")
        async with at_work(later, "", resume="scripted-1"):
            await asyncio.sleep(QUIET + 1)
            assert prompts(later) == []
        assert needs(again) == []


async def kill_when_parked(run: Run) -> None:
    """Run the client in its own process until it is parked, and kill the process."""
    command = [sys.executable, "-P", "-m", "watchroom_cli.main", "run", "claude"]
    command += [str(run.workspace.root), "Do it", "--agent", "alice", "--mode", "default"]
    command += ["--command", shlex.join(run.support.command)]
    working = await asyncio.create_subprocess_exec(*command, cwd=run.folder, stdout=subprocess.DEVNULL)
    await run.has_status("parked")
    working.kill()
    await asyncio.wait_for(working.wait(), PATIENCE)


async def test_a_run_of_one_turn_stays_parked_and_can_be_continued(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [limit(workspace)], [says("Done")])
    await run.once()
    assert run.status == "parked"
    assert not any(isinstance(each, SessionEnded) for each in run.events)
    again = Run(workspace, tmp_path, [says("Done")])
    await again.once("Go on", resume="scripted-1")
    assert again.status == "done"
    assert needs(workspace) == []


@pytest.mark.parametrize("tool", [PAUSE, CANCEL])
async def test_a_leave_never_continues_a_stopped_agent(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock, tool: str
) -> None:
    run = Run(workspace, tmp_path, [limit(workspace)], [says("Done")])
    async with at_work(run):
        await run.has_status("parked")
        tell(workspace, RESUME, at_reset=True)
        tell(workspace, tool)
        await run.has_status("paused" if tool == PAUSE else "cancelled")
        clock.ahead = 2 * HOUR
        await asyncio.sleep(QUIET)
        assert len(prompts(run)) == 1


async def test_a_leave_does_not_exceed_a_budget(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    usage = {"totalTokens": 120, "inputTokens": 100, "outputTokens": 20}
    run = Run(workspace, tmp_path, [says("Well"), {"usage": usage}], [limit(workspace)], [says("Done")])
    async with at_work(run):
        await run.until(lambda: any(isinstance(each, TurnEnded) for each in run.events))
        tell(workspace, MESSAGE, "More")
        await run.has_status("parked")
        add_budget(workspace)
        tell(workspace, RESUME, at_reset=True)
        clock.ahead = HOUR
        await run.has_status("waiting_for_human_input")
        assert len(prompts(run)) == 2
        assert "parked" not in [each.kind for each in needs(workspace)]


async def test_a_message_of_a_person_resumes_and_one_of_an_agent_waits(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), limit(workspace)], [says("Done")])
    async with at_work(run):
        await run.has_status("parked")
        workspace.messages.notify("alice", "News")
        await asyncio.sleep(QUIET)
        assert len(prompts(run)) == 1
        tell(workspace, MESSAGE, "Try now")
        await run.has_status("idle")
        assert len(prompts(run)) == 2


async def test_an_instruction_that_no_process_received_counts_later(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), limit(workspace)], [says("Done")])
    await run.once()
    tell(workspace, RESUME)
    again = Run(workspace, tmp_path, [says("Done")])
    again.log.write_text("")
    async with at_work(again, "", resume="scripted-1"):
        await again.has_status("idle")
        assert len(prompts(again)) == 1


async def test_a_pause_without_a_process_is_kept_by_a_leave(
    workspace: Workspace, tmp_path: Path, clock: JumpingClock
) -> None:
    run = Run(workspace, tmp_path, [says("Well"), limit(workspace)], [says("Done")])
    await run.once()
    tell(workspace, RESUME, at_reset=True)
    rows = workspace.stops.stop(CallContext("human:ann"), ["alice"])[0]
    tell(workspace, RESUME, at_reset=True)
    assert workspace.stops.stopped() == rows
    clock.ahead = HOUR
    again = Run(workspace, tmp_path, [says("Done")])
    again.log.write_text("")
    async with at_work(again, "", resume="scripted-1"):
        await asyncio.sleep(QUIET + 1)
        assert prompts(again) == []
