"""The editor of the person: in the terminal, or in a window beside the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from tui.driver import User, dashboard
from watchroom import Workspace
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


async def test_the_help_has_keys_of_repositories_only_there(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("question_mark")
        await user.until(lambda: user.place == "HelpDialog", "the help")
        shown = user.words_in("#detail")
        assert "your editor" not in shown
        assert "apart from that of others" not in shown
        assert "side by side" in shown
