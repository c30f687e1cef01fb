"""The overview: needs are answered in place, and its numbers agree with all other screens."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from calls import ok
from damage import journal_of
from rich.cells import cell_len
from runtime.scripted import at_work, say
from runtime.weather import call, calling
from runtime.working import HELLO, Held, chat
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.driver import running as running_app
from tui.pictures import SIZES
from tui.sessions import asks, running, says
from tui.team import PLAN, deliver, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.agents.simulation.repository.story import load_story
from watchroom.model import PRESENCE, Write
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp
from watchroom_tui.keys.actions import SCREENS
from watchroom_tui.services.agent_stop import AgentStop
from watchroom_tui.services.settings import Settings

SAVE = call("save_to_my_workspace", filename="x.md", content="x")


async def test_a_request_is_approved_on_the_overview(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(SAVE), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.sees("a r enter", "save x.md")
        await user.press("a")
        assert (await bob.ended()).status == "done"
        assert workspace.journal.head("private", "bob/x.md") is not None
        await user.sees("✓ all well")
        assert user.place == "overview"


@pytest.mark.parametrize("screen", ["overview", "requests"])
async def test_an_approval_is_one_hop_to_a_thread(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, screen: str
) -> None:
    hops: list[str] = []
    to_thread = asyncio.to_thread

    def counted(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        frame = inspect.currentframe()
        caller = frame.f_back.f_globals["__name__"] if frame and frame.f_back else ""
        # The agent runs in this process, too, and screens read what they show.
        if caller.startswith("watchroom_tui.services"):
            hops.append(f"{caller}: {function}")
        return to_thread(function, *args, **kwargs)

    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(SAVE), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.sees("a r enter", "save x.md")
        if screen == "requests":
            await user.goes_to("7", "requests")
            await user.until(lambda: "x.md" in user.words_in("#request"), "the request")
        monkeypatch.setattr(asyncio, "to_thread", counted)
        await user.press("a")
        await user.is_told("bob: approved")
        assert (await bob.ended()).status == "done"
        assert len(hops) == 1, hops


async def test_a_remapped_approval_is_named_and_works_on_the_overview(workspace: Workspace) -> None:
    app = WatchroomApp(
        workspace.journal,
        place="team/",
        person="dana",
        open_workspace=lambda: workspace,
        settings=Settings(keys={"approve": "f2", "open": ["f4", "l"]}),
    )
    async with (
        running_app(app, MIDDLE, paints=False) as user,
        running(workspace, "bob", calling(SAVE), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.sees("f2 r f4 open", "save x.md")
        await user.press("a")
        assert user.model.requests
        await user.press("f2")
        assert (await bob.ended()).status == "done"


async def test_a_request_is_rejected_on_the_overview_with_a_reason(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(SAVE), says("I leave it."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.sees("a r enter")
        await user.press("r")
        await user.until(lambda: user.place == "TextInputDialog", "the reason")
        await user.type("not now")
        await user.press("enter")
        assert (await bob.ended()).status == "done"
        assert "not now" in str(bob.session.state.messages)
        assert workspace.journal.head("private", "bob/x.md") is None


async def test_a_need_with_a_deadline_shows_its_time_and_comes_first(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which one?"), patience=25.0),
    ):
        await user.sees("s left", "⚑ 2 need you", "next: question bob, 2")
        assert [need.kind for need in user.list("needs").items] == ["request", "conflict"]
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "requests", "the requests")
        await user.sees("next: conflict plan.md")
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "merge", "the merge")


async def test_the_headers_count_equals_the_lists(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        write(alice, "b\n", 0, "b.md")
        write(alice, "c\n", 1, "b.md")
        stale_write(workspace.tools("bob"), "late\n", 1, "b.md")
        deliver(alice, "bob", "not-late-yet.md")
        await user.has_taken_in(workspace)
        await user.sees("⚑ 2 need you")
        assert len(user.list("needs").items) == 2


async def test_readings_in_a_row_are_one_line_until_they_are_unfolded(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one\n", 0)
    for _ in range(12):
        ok(alice, "collab_read", filepath=PLAN)
    async with dashboard(workspace) as user:
        await user.sees("12 reads")
        folded = len(user.list("activity").items)
        await user.press("z")
        await user.until(lambda: len(user.list("activity").items) == folded + 11, "each reading")
        await user.press("z")
        await user.sees("12 reads")


@contextmanager
def leased(root: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a process that holds a lease, and the lease."""
    code = f"""
from watchroom.kernel.journal import open_journal
journal = open_journal({journal_of(root)!r})
print(journal.presence.hold("watchroom demo here"), flush=True)
input()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


async def test_a_process_that_is_killed_is_missed_on_the_overview(workspace: Workspace, root: Path) -> None:
    with leased(root) as (process, lease):
        begin = Write("bob", "begin_session", "session", "bob/1", "{}", expected=0)
        workspace.journal.append([begin._replace(detail={"status": "running", PRESENCE: lease})])
        async with dashboard(workspace) as user:
            await user.sees("● bob", "✓ all well")
            process.kill()
            await user.sees(
                "◌ not seen", "its process ended; resume: watchroom demo DIR", "◌ bob", "⚑ 1 needs you"
            )


def is_named(user: User, screen: str, text: str) -> bool:
    """Return whether ``text`` contains a screen's name, short or long."""
    return any(user.app.texts(f"action.screen_{screen}.{name}") in text for name in ("short", "label"))


@pytest.mark.parametrize("size", SIZES)
async def test_the_footer_has_all_screens_and_a_click_goes_there(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        for key, screen in SCREENS:
            if screen != "overview":
                await user.goes_to(key, screen)
            await user.until(lambda: is_named(user, screen, user.lines()[-1].partition("│")[0]), screen)  # noqa: B023
            screens, _, keys = user.lines()[-1].partition("│")
            assert all(number in screens for number, _ in SCREENS)
            if size != NARROW:
                assert all(is_named(user, name, screens) for _, name in SCREENS)
            elif screen == "overview":
                assert keys.count(" z ") == 1
                assert "…" not in keys
        column = user.lines()[-1].index(" 4") + 1
        await user.pilot.click(offset=(column, size[1] - 1))
        await user.until(lambda: user.place == "files", "the files")


async def test_all_agents_are_paused_and_go_on(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which?"), asks("And now?")) as bob,
    ):
        await user.until(lambda: user.model.requests, "a request")
        await user.press("ctrl+x")
        await user.is_asked("Pause 1 agents: bob?")
        await user.press("enter")
        await user.is_told("Paused: bob")
        assert bob.session.state.status == "paused"
        row = workspace.session_zone.newest(bob.session.path)
        assert row is not None
        await user.sees(f"its session is paused (row {row.seq})", "All 1 confirmed stopped.")
        await user.press("escape")
        await shows_status(user, "paused")
        await user.press("ctrl+x")
        await user.is_asked("Resume 1 paused agents: bob?")
        await user.press("enter")
        await user.is_told("Resumed: bob")
        await shows_status(user, "waiting_for_human_input")


async def test_agents_that_begin_later_are_paused_and_go_on_with_the_others(workspace: Workspace) -> None:
    async with dashboard(workspace) as user, running(workspace, "bob", asks("Which?")) as bob:
        await user.until(lambda: user.model.requests, "a request")
        await user.press("ctrl+x")
        await user.is_asked("Pause 1 agents: bob? Each finishes its current step. Agents that begin later")
        await user.press("enter")
        await user.is_told("Paused: bob")
        await user.press("escape")
        say(workspace, "resume_agent", agent_id="bob")
        await shows_status(user, "waiting_for_human_input")
        say(workspace, "cancel_agent", agent_id="bob")
        await user.until(lambda: bob.session.state.status == "cancelled", "its end")
        await shows_status(user, "cancelled")
        await user.press("ctrl+x")
        await user.is_asked("Let agents that begin from now on work?")
        await user.press("escape")
        async with running(workspace, "alice", asks("Which?")):
            await shows_status(user, "paused")
            await user.press("ctrl+x")
            await user.is_asked("Resume 1 paused agents: alice?")
            await user.press("enter")
            await user.is_told("Resumed: alice")
            await shows_status(user, "waiting_for_human_input")


async def test_an_agent_that_does_not_stop_is_reported(workspace: Workspace) -> None:
    held = Held()
    hanging = chat(calling(call("work")), tools={"work": held})
    async with (
        dashboard(workspace) as user,
        workspace.sessions.begin("bob", hanging, messages=HELLO) as bob,
        at_work(bob),
    ):
        await held.began.wait()
        await shows_status(user, "running")
        user.app.run_worker(AgentStop(user.app, patience=0).toggle())
        await user.is_asked("Pause 1 agents: bob?")
        await user.press("enter")
        await user.is_told("Not confirmed stopped: bob.")
        await user.sees("bob NOT STOPPED its session is still running (row ", f"{workspace.root} bob --end")


async def test_a_client_that_outlives_its_session_is_stopped_too(
    workspace: Workspace,
) -> None:
    """Its own shell can report that end. Here the client is this process."""
    own = ClientInfo("claude", pid=os.getpid(), started=workspace.platform.process_start(os.getpid()))
    session = ClientSession(workspace, "bob", "s-1", own)
    session.record(PromptSubmitted("Go"))
    session.record(SessionEnded())
    async with dashboard(workspace) as user:
        await shows_status(user, "done")
        user.app.run_worker(AgentStop(user.app, patience=0).toggle())
        await user.is_asked("Pause 1 agents: bob?")
        await user.press("enter")
        await user.is_told("Not confirmed stopped: bob.")


async def shows_status(user: User, status: str) -> None:
    await user.until(
        lambda: any(view.session and view.session.status == status for view in user.model.agents), status
    )


async def test_a_notice_is_one_line_above_the_footer(workspace: Workspace) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        user.app.show_message("something that takes much more than a single line of the terminal " * 3)
        await user.is_told("something that takes")
        await user.until(lambda: len(user.app.screen.query("Toast")) == 1, "the notice")
        region = user.app.screen.query_one("Toast").region
        assert (region.height, region.y) == (1, NARROW[1] - 2)


async def test_only_the_newest_notice_shows(workspace: Workspace) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        user.app.show_message("the first notice")
        await user.sees("the first notice")
        user.app.show_message("the second notice", "warning")
        await user.sees("the second notice")
        assert not user.shows("the first notice")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tasks_of_the_repository_demo_fit_on_one_line(language: Language) -> None:
    assert cell_len(load_story().say("ending", language)) <= NARROW[0] - 3
