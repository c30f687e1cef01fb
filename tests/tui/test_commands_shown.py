"""Commands on the tasks screen: their output while they run, their end, and their sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tui.driver import MIDDLE, NARROW, User, dashboard, past
from tui.societies import begins, needs_sandbox, runs, to_pane, to_tasks
from watchroom import Workspace
from watchroom.model import Write
from watchroom.platform.sandbox.probe import ProbeResult, SandboxProbe
from watchroom_tui.dialogs.sandbox import SandboxDialog

WAITS = "while [ ! -e {name} ]; do sleep 0.02; done"
"""Runs until the file exists."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "calculator"


@pytest.fixture
def task(workspace: Workspace, folder: Path) -> str:
    needs_sandbox(workspace)
    return begins(workspace, folder)


def style_of(user: User, text: str) -> str:
    """Return the style of a text in the output."""
    return next(span.style for span in user.spans("output") if text in span.text)


def output_words(user: User) -> str:
    """Return the text of the output, without the command's state."""
    return user.words_in("#output").removesuffix(str(user.text("output").border_subtitle)).rstrip()


async def test_a_command_shows_how_it_ended_and_what_it_printed(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "echo fine")
    runs(workspace, "root", "echo out; echo oh no >&2; exit 3")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("exit 3", "exit 0")
        await user.until(lambda: output_words(user).endswith("out oh no"), "its output")
        assert style_of(user, "out") == ""
        assert style_of(user, "oh no") == "warning"
        assert "exit 3" in str(user.text("output").border_subtitle)
        await to_pane(user, "commands")
        await user.press("down")
        await user.until(lambda: output_words(user).endswith("fine"), "the other one's output")
        assert "$ echo fine" in str(user.text("output").border_title)
        assert "exit 0" in str(user.text("output").border_subtitle)
        await user.press("enter")
        assert user.pane == "output"
        await user.press("escape")
        assert user.pane == "commands"


async def test_commands_are_listed_after_the_palette_was_open(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "echo fine")
    async with dashboard(workspace) as user:
        await user.press("colon", "escape")
        await to_tasks(user)
        await user.sees("─ Commands", "exit 0")


async def test_output_fills_while_the_command_runs(workspace: Workspace, task: str, folder: Path) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        command = f"echo one; echo careful >&2; {WAITS.format(name='go')}; echo two"
        work = asyncio.create_task(asyncio.to_thread(runs, workspace, "root", command))
        await user.until(lambda: "one" in user.words_in("#output"), "what it prints first")
        await user.until(lambda: "one careful" in user.words_in("#output"), "what it says on standard error")
        assert style_of(user, "careful") == ""
        assert "▸" in str(user.text("output").border_subtitle)
        assert user.cursor("commands").ended is None
        assert "$ echo one" in user.words_in("#members")
        (folder / "go").touch()
        await user.until(lambda: "two" in user.words_in("#output"), "what it prints last")
        await user.until(lambda: "exit 0" in str(user.text("output").border_subtitle), "its end")
        await work


async def test_standard_error_warns_where_the_command_failed(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "echo broken >&2; exit 3")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.until(lambda: "broken" in user.words_in("#output"), "its error")
        assert style_of(user, "broken") == "warning"


async def test_the_newest_command_is_followed(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "echo first")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.until(lambda: output_words(user).endswith("first"), "the first")
        await asyncio.to_thread(runs, workspace, "root", "echo second")
        await user.until(lambda: output_words(user).endswith("second"), "the second")


async def test_the_shown_command_stays_when_another_starts(workspace: Workspace, task: str) -> None:
    for word in ("first", "second"):
        runs(workspace, "root", f"echo {word}")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await to_pane(user, "commands")
        await user.press("down")
        await user.until(lambda: output_words(user).endswith("first"), "the first")
        await asyncio.to_thread(runs, workspace, "root", "echo third")
        await user.sees("1 new ↑")
        assert output_words(user).endswith("first")


async def test_the_shown_command_keeps_running_when_others_start(
    workspace: Workspace, task: str, folder: Path
) -> None:
    runs(workspace, "root", "echo first")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        command = f"echo one; {WAITS.format(name='go')}; echo two"
        work = asyncio.create_task(asyncio.to_thread(runs, workspace, "root", command))
        await user.until(lambda: output_words(user).endswith("one"), "what it prints first")
        await to_pane(user, "commands")
        await asyncio.to_thread(runs, workspace, "root", "echo between")
        await user.sees("$ echo between")
        await user.press("down")
        await user.until(lambda: output_words(user).endswith("one"), "the one that runs")
        await asyncio.to_thread(runs, workspace, "root", "echo last")
        await user.sees("1 new ↑")
        (folder / "go").touch()
        await work
        await user.until(lambda: output_words(user).endswith("one two"), "what it prints last")
        await user.until(lambda: user.cursor("commands").exit_code == 0, "how it ended")
        assert user.shows("1 new ↑")


@pytest.mark.parametrize("size", [MIDDLE, NARROW])
async def test_output_follows_unless_it_was_scrolled_up(
    workspace: Workspace, task: str, folder: Path, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        await to_tasks(user)
        command = f"seq 100; {WAITS.format(name='go')}; seq 101 200; {WAITS.format(name='on')}; seq 201 300"
        work = asyncio.create_task(asyncio.to_thread(runs, workspace, "root", command))
        await to_pane(user, "output")
        await user.sees("│ 100 ")
        (folder / "go").touch()
        await user.sees("│ 200 ")
        await user.press("up", "up", "up")
        assert user.shows("│ 197 ")
        assert not user.shows("│ 200 ")
        (folder / "on").touch()
        await work
        await user.until(lambda: "exit 0" in str(user.text("output").border_subtitle), "its end")
        assert user.shows("│ 197 ")
        assert not user.shows("│ 200 ")
        await user.press("G")
        await user.sees("│ 300 ")


async def test_of_a_flood_the_newest_lines_are_kept(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "seq 5000")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("│ 5000 ")
        await to_pane(user, "output")
        await user.press("g")
        await user.sees("… 3000 earlier lines", "│ 3001 ")


async def test_a_new_scrollbar_hides_no_letter(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "for i in $(seq 40); do seq -s '' 60; done")
    whole = "".join(str(n) for n in range(1, 61))
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.until(lambda: whole in user.words_in("#output").replace(" ", ""), "a line, whole")


async def test_an_ended_row_shows_its_output_in_the_detail(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "echo one; echo two")
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.sees("exit 0")
        await user.press("enter")
        await user.until(lambda: user.place == "RowDialog", "the row")
        await user.until(lambda: user.words_in("#content").endswith("one two"), "what it printed")


async def test_empty_output_is_reported(workspace: Workspace, task: str) -> None:
    runs(workspace, "root", "true")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("No output.")


async def test_the_best_sandbox_is_shown_once_it_is_known(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("Commands · sandbox: bubblewrap")
        await user.chooses("sandbox")
        await user.until(lambda: user.place == "SandboxDialog", "the sandboxes")
        await user.sees("bubblewrap     ✓ works", "The kernel limits")
        await user.press("escape")
        assert user.place == "tasks"


async def test_a_sandbox_that_does_not_work_says_why(workspace: Workspace) -> None:
    results = (
        ProbeResult("bubblewrap", True, False, "no user namespaces\x1b[31m\n[/b]", None),
        ProbeResult("landlock", False, False, "", None),
    )
    async with dashboard(workspace) as user:
        user.app.push_screen(SandboxDialog(SandboxProbe(results, False)))
        await user.sees("commands of agents are refused", "✖ installed, does not work", "– not installed")
        await user.sees("no user namespaces␛[31m", "[/b]")


async def test_in_the_past_a_command_runs_as_it_did_then(
    workspace: Workspace, task: str, folder: Path
) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        command = f"echo one; {WAITS.format(name='go')}; echo two"
        work = asyncio.create_task(asyncio.to_thread(runs, workspace, "root", command))
        await user.until(lambda: output_words(user).endswith("one"), "what it prints first")
        (folder / "go").touch()
        await work
    workspace.flush()
    rows = workspace.journal.rows(0)
    printed = next(row.seq for row in rows if row.tool == "command_output")
    async with past(workspace.journal, printed) as user:
        await to_tasks(user)
        await user.until(lambda: output_words(user).endswith("one"), "what it had printed")
        assert "▸" in str(user.text("output").border_subtitle)
        assert not user.shows("sandbox:")
    async with past(workspace.journal, rows[-1].seq) as user:
        await to_tasks(user)
        await user.until(lambda: output_words(user).endswith("one two"), "all that it printed")


async def test_a_running_command_without_output_is_marked(
    workspace: Workspace, task: str, folder: Path
) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        work = asyncio.create_task(asyncio.to_thread(runs, workspace, "root", WAITS.format(name="go")))
        await user.until(lambda: "No output yet" in user.words_in("#output"), "that it is quiet")
        (folder / "go").touch()
        await user.until(lambda: "No output." in user.words_in("#output"), "that it stayed so")
        await work


async def test_an_interrupted_command_is_marked(workspace: Workspace, task: str) -> None:
    begun = Write("root", "run_command", "command", f"{task}/c1", "make", "make", 0)
    cut_off = Write("system", "end_command", "command", f"{task}/c1", '{"interrupted": true}', "make", 1)
    workspace.journal.append([begun, cut_off._replace(detail={"interrupted": True})])
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.until(lambda: "its result is unknown" in user.words_in("#output"), "how it ended")
