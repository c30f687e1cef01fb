"""Work of a killed process is shown as lost, with the command that resumes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tui.driver import MIDDLE, WIDE, dashboard
from tui.other_process import OtherProcess
from tui.societies import begins, to_tasks
from watchroom import Workspace
from watchroom.model import Write
from watchroom_tui.formatters.local_time import local_clock

pytestmark = pytest.mark.slow(8)


@pytest.fixture
def process(workspace: Workspace, root: Path) -> Iterator[OtherProcess]:
    other = OtherProcess(root)
    yield other
    other.end()


async def test_an_agent_of_a_killed_process_is_lost_with_its_resume_command(
    workspace: Workspace, process: OtherProcess
) -> None:
    process.runs_session(workspace, "bob")
    async with dashboard(workspace, size=WIDE) as user:
        await user.goes_to("2", "agents")
        await user.press("down")
        await user.until(lambda: "● bob" in user.words_in("#agents"), "that it is at work")
        process.kill()
        since = f"not seen since {local_clock(workspace.journal.rows(0)[-1].time)}"
        await user.sees(f"{since}; resume with: watchroom demo DIR")
        await user.until(lambda: "◌ bob bottom not seen since" in user.words_in("#agents"), "in the list")
        await user.until(lambda: f"◌ {since}" in str(user.text("session").border_title), "in the title")
        await user.press("p")
        await user.is_told("No process runs bob. It continues when resumed with: watchroom demo DIR.")
        await user.press("m")
        await user.until(
            lambda: (
                "bob is not seen alive and reads this when it is resumed with: watchroom demo DIR"
                in user.words_in("#hint")
            ),
            "who reads it",
        )


async def test_an_open_message_shows_that_its_agent_was_killed(
    workspace: Workspace, process: OtherProcess
) -> None:
    process.runs_session(workspace, "bob")
    async with dashboard(workspace, size=WIDE) as user:
        await user.goes_to("2", "agents")
        user.list("agents").move_to("bob")
        await user.press("m")
        await user.until(lambda: "bob reads this before" in user.words_in("#hint"), "that it is at work")
        process.kill()
        await user.until(lambda: "bob is not seen alive" in user.words_in("#hint"), "that it is gone")


async def test_many_agents_of_one_process_are_counted_instead_of_named(
    workspace: Workspace, process: OtherProcess
) -> None:
    process.runs_session(workspace, "alice")
    process.runs_session(workspace, "bob")
    async with dashboard(workspace, size=MIDDLE) as user:
        process.kill()
        await user.sees("◌ not seen 2 agents their process ended; resume: watchroom demo DIR · alice, bob")
        await user.sees("next: not seen 2 agents")
        await user.sees("system not seen")
        ended = Write(
            "alice", "end_session", "session", "alice/1", "{}", expected=1, detail={"status": "done"}
        )
        workspace.journal.append([ended])
        await user.sees("next: not seen bob", "◌ not seen bob", "its process ended; resume")


async def test_a_task_and_a_command_of_a_killed_process_are_lost(
    workspace: Workspace, process: OtherProcess, tmp_path: Path
) -> None:
    task = begins(workspace, tmp_path / "calculator", "Build it.")
    process.runs_session(workspace, "root")
    process.runs_command(workspace, "root", task)
    async with dashboard(workspace, size=WIDE) as user:
        await to_tasks(user, "● Build it.")
        await user.sees("$ make all")
        process.kill()
        await user.sees("◌ Build it.", "◌ root", "◌ not seen")
        title = user.list("members")
        await user.until(lambda: "resume with: watchroom demo DIR" in str(title.border_title), "how")
        await user.until(lambda: "not seen since" in str(user.text("output").border_subtitle), "the output")


async def test_an_orderly_end_is_stopped_and_not_lost(
    workspace: Workspace, process: OtherProcess, tmp_path: Path
) -> None:
    begins(workspace, tmp_path / "calculator", "Build it.")
    process.runs_session(workspace, "root")
    async with dashboard(workspace, size=WIDE) as user:
        await to_tasks(user, "● Build it.")
        process.end()
        await user.sees("○ Build it.", "process ended")
        assert not user.shows("not seen")


async def test_a_session_of_an_ended_process_is_shown_as_stopped(
    workspace: Workspace, process: OtherProcess
) -> None:
    process.runs_session(workspace, "alice")
    async with dashboard(workspace, size=WIDE) as user:
        await user.goes_to("2", "agents")
        await user.sees("Session ● running")
        process.end()
        await user.sees("Session ○ process ended; can be resumed")
