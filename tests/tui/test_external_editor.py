"""The editor of the person: in the terminal, or in a window beside the dashboard."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from calls import ok
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from tui.driver import User, dashboard
from tui.societies import to_pane, to_tasks, works
from tui.team import deliver, write
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import CallFinished, CallStarted, ClientInfo
from watchroom.agents.clients.session import ClientSession
from watchroom_tui.services.external_editor import has_window


@pytest.mark.parametrize(
    ("program", "expected"),
    [("code", True), ("/usr/bin/subl", True), ("gvim", True), ("vi", False), ("nvim", False)],
)
def test_editors_with_windows_are_known(program: str, expected: bool) -> None:
    assert has_window(program) is expected


async def opens_file(user: User) -> None:
    await user.goes_to("4", "files")
    await user.until(lambda: user.list("changes").items, "the change")
    await user.press("o")


async def test_an_editor_with_a_window_runs_beside_the_dashboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    repository = Repository(tmp_path / "project")
    repository.commit(a__txt="one\n")
    editor, opened = tmp_path / "code", tmp_path / "opened"
    editor.write_text(f'#!/bin/sh\nprintf %s "$2" > {opened}.new\nmv {opened}.new {opened}\nsleep 5\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"{editor} --wait")
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        (repository.folder / "a.txt").write_text("two\n")
        workspace.trees.refresh_all()
        async with dashboard(workspace) as user:
            await opens_file(user)
            await user.is_told(f"Opened in {editor} --wait.")
            await user.until(opened.exists, "the editor")
            assert opened.read_text() == str(repository.folder / "a.txt")
            editor.unlink()
            await user.press("o")
            await user.is_told("Could not start the editor")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which an editor with a window writes what it was given."""
    editor, opened = tmp_path / "code", tmp_path / "opened"
    editor.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    return opened


async def opens(user: User, opened: Path, expected: Path) -> None:
    """Press the key, and wait until the editor has the file ``expected``."""
    await user.press("o")
    await user.until(partial(has_text, opened, str(expected)), f"{expected} in the editor")


def find(folder: Path, name: str) -> Path:
    return next(folder.rglob(name))


def has_text(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


async def test_files_of_a_workspace_are_opened_on_each_screen(
    workspace: Workspace, root: Path, alice: Toolbox, bob: Toolbox, opened: Path
) -> None:
    write(alice, "one", 0)
    ok(alice, "save_to_my_workspace", filename="notes.md", content="mine")
    deliver(alice, "bob", "raw.md")
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: user.list("shared").items, "the file")
        await opens(user, opened, root / "collaborative/current/plan.md")
        await user.goes_to("2", "agents")
        user.list("agents").move_to("alice")
        await user.until(lambda: user.list("files").items, "the private file")
        await opens(user, opened, find(root, "notes.md"))
        await user.goes_to("3", "handoffs")
        await user.until(lambda: user.list("deliveries").items, "the handoff")
        await opens(user, opened, find(root, "raw.md"))


async def test_files_of_a_task_are_opened(workspace: Workspace, tmp_path: Path, opened: Path) -> None:
    folder = tmp_path / "calculator"
    folder.mkdir()
    works(workspace, folder)
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await to_pane(user, "files")
        await user.until(lambda: user.list("files").items, "the files")
        await opens(user, opened, folder / "README.md")
        (folder / "README.md").unlink()
        await user.press("o")
        await user.is_told(f"This file is not on this machine: {folder}/README.md")


async def test_a_file_that_a_client_edited_is_opened(
    workspace: Workspace, tmp_path: Path, opened: Path
) -> None:
    (tmp_path / "a.py").write_text("x\n")
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", cwd=str(tmp_path)))
    arguments = json.dumps({"file_path": f"{tmp_path}/a.py", "old_string": "x", "new_string": "y"})
    session.record(CallStarted("c1", "Edit", arguments))
    session.record(CallFinished("c1", tool="Edit", arguments=arguments, cwd=str(tmp_path)))
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: user.list("shared").items, "the file")
        await opens(user, opened, tmp_path / "a.py")


async def test_without_a_file_the_key_says_why(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        for key, screen in (("2", "agents"), ("3", "handoffs"), ("4", "files"), ("9", "tasks")):
            await user.goes_to(key, screen)
            await user.press("o")
            await user.is_told("select a file first")


async def test_the_help_has_keys_of_repositories_only_there(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("question_mark")
        await user.until(lambda: user.place == "HelpDialog", "the help")
        shown = user.words_in("#detail")
        assert "your editor" in shown
        assert "apart from that of others" not in shown
        assert "side by side" in shown
