"""A task that is started in the dashboard."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from textual.widgets import Input
from tui.driver import dashboard
from watchroom import Workspace
from watchroom_tui.dialogs.new_task import NewTaskDialog


@pytest.fixture
def launched(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill the started process at the end. Its output is removed with the other files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    for presence in workspace.journal.presence.all():
        if presence.process != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(presence.process, signal.SIGKILL)


@pytest.mark.usefixtures("launched")
async def test_a_task_is_begun_from_any_screen_and_is_shown(workspace: Workspace, tmp_path: Path) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("N")
        await user.until(lambda: user.place == "NewTaskDialog", "the dialog")
        folder = user.app.screen.query_one("#folder", Input)
        assert folder.value == f"{workspace.root}-task-1"
        await user.press("enter")
        await user.until(lambda: "requirement" in user.words_in("#said"), "what is missing")
        await user.paste("Build a calculator.\nIt reads a line.")
        await user.press("tab", "ctrl+u")
        await user.paste(str(Path(workspace.root) / "inside"))
        await user.press("enter")
        await user.until(lambda: "cannot be a task's workspace" in user.words_in("#said"), "why not there")
        assert "It reads a line." in user.words_in("#text"), "what was entered stays"
        await user.press("ctrl+u")
        await user.paste(str(tmp_path / "app"))
        await user.press("enter")
        await user.until(lambda: "select simulated developers" in user.words_in("#said"), "who works on it")
        await user.press("tab", "tab", "space")
        await user.until(lambda: "X" in user.words_in("#simulate").split("Simulated")[0], "the tick")
        await user.press("enter")
        await user.until(lambda: user.place == "tasks", "the tasks")
        await user.until(lambda: user.list("tasks").items, "the task")
        assert user.cursor("tasks").task.folder == str(tmp_path / "app")
        assert user.cursor("tasks").task.row.message == "Build a calculator."
        assert user.pane == "tasks"


async def test_an_unfinished_task_is_kept_and_quitting_asks_about_it(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("N")
        await user.until(lambda: user.place == "NewTaskDialog", "the dialog")
        await user.type("wait")
        await user.press("escape")
        assert not isinstance(user.app.screen, NewTaskDialog)
        await user.press("q")
        await user.is_asked("new task")
        await user.press("escape", "N")
        await user.until(lambda: "wait" in user.words_in("#text"), "what was written")
