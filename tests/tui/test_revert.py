"""An agent's work is reverted in the dashboard: first a preview, then one key."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from calls import ok
from tui.driver import MIDDLE, NARROW, WIDE, User, dashboard
from tui.team import write
from watchroom import Agent, Toolbox, Workspace
from watchroom.texts import Language
from watchroom_tui.dialogs.confirm import ConfirmDialog


def content(workspace: Workspace, path: str) -> str | None:
    head = workspace.journal.head("collab", path)
    assert head is not None
    return workspace.journal.content(head.seq)


def _is_at(user: User, seq: int) -> bool:
    return user.model.seq == seq


async def test_an_agents_work_is_previewed_reverted_and_restored(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(bob, "1\n2\n3\n", 0)
    write(alice, "one\n2\n3\n", 1)
    write(alice, "junk\n", 0, "junk.md")
    ok(alice, "save_to_my_workspace", filename="own.md", content="own\n")
    write(bob, "1\nx\n3\n", 0, "both.md")
    write(alice, "1\nalice\n3\n", 1, "both.md")
    write(bob, "1\nalice and bob\n3\n", 2, "both.md")
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.until(lambda: user.cursor("agents").agent.id == "alice", "alice")
        await user.press("V")
        await user.until(lambda: "Revert 4 change" in user.words_in("#question"), "what it changes")
        assert "+1" in user.words_in("#changes")
        # The box of the question grows with the next layout.
        await user.until(lambda: "settle (!): 1." in user.words_in("#question"), "the conflict")
        await user.press("enter")
        await user.until(lambda: content(workspace, "plan.md") == "1\n2\n3\n", "the text of bob")
        await user.until(lambda: user.place == "agents", "the screen beneath")
        assert content(workspace, "junk.md") is None
        await user.until(lambda: not user.list("files").items, "that her file is gone")
        assert content(workspace, "both.md") == "1\nalice and bob\n3\n"
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "merge", "the merge of what both wrote")
        await user.sees("incoming · revert by human:dana")
        await user.press("escape")
        await user.goes_to("8", "activity")
        row = workspace.journal.version("revert", next(workspace.journal.heads("revert")).path, 2)
        assert row is not None
        await user.until(lambda: row in user.list("rows").items, "the row of the revert")
        user.list("rows").move_to(row.seq)
        await user.press("V")
        await user.until(lambda: "Revert 3 change" in user.words_in("#question"), "the way back")
        await user.press("enter")
        await user.until(lambda: content(workspace, "plan.md") == "one\n2\n3\n", "the text of alice")


async def test_conflicts_can_be_left_out_of_a_revert(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(bob, "1\nx\n3\n", 0, "both.md")
    write(alice, "1\nalice\n3\n", 1, "both.md")
    write(bob, "1\nalice and bob\n3\n", 2, "both.md")
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.press("V")
        await user.until(lambda: "Revert 1 change" in user.words_in("#question"), "what it changes")
        await user.press("A")
        await user.until(
            lambda: "settle (!): 1." in user.words_in("#question"), "that a merge decides this one"
        )
        await user.press("z")
        await user.until(lambda: "Nothing to revert." in user.words_in("#question"), "that nothing is left")
        await user.press("escape")
        await user.until(lambda: user.place == "agents", "the screen beneath")


async def test_work_after_a_moment_of_the_timeline_is_reverted(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(bob, "1\n2\n3\n", 0)
    write(alice, "one\n2\n3\n", 1)
    write(bob, "one\n2\nthree\n", 2)
    async with dashboard(workspace) as user:
        await user.goes_to("7", "requests")
        await user.press("T")
        await user.until(lambda: user.app.timeline is not None, "the time line")
        row = workspace.journal.version("collab", "plan.md", 1)
        assert row is not None
        while user.model.seq > row.seq:
            before = user.model.seq
            await user.press("comma")
            await user.until(partial(_is_at, user, before - 1), "the row before")
        await user.press("V")
        await user.until(lambda: "Revert 1 change" in user.words_in("#question"), "what it changes")
        await user.press("enter")
        await user.until(lambda: content(workspace, "plan.md") == "1\n2\n3\n", "the text of that moment")


async def test_a_key_includes_the_work_of_spawned_agents(workspace: Workspace, tmp_path: Path) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / "project")
    workspace.register([Agent("lead", task=task.id)])
    lead = workspace.tools("lead")
    helper = workspace.tools(str(ok(lead, "spawn_agent", role="helper", instructions="Help.")["agent_id"]))
    ok(lead, "save_to_my_workspace", filename="own.md", content="own\n")
    ok(helper, "save_to_my_workspace", filename="notes.md", content="text\n")
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        user.list("agents").move_to("lead")
        await user.until(lambda: user.cursor("agents").agent.id == "lead", "lead")
        await user.press("V")
        await user.until(lambda: "own.md" in user.words_in("#changes"), "what she did")
        assert "notes.md" not in user.words_in("#changes")
        await user.press("C")
        await user.until(lambda: "notes.md" in user.words_in("#changes"), "what the other did, too")
        await user.press("C")
        await user.until(lambda: "notes.md" not in user.words_in("#changes"), "her work alone")


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_all_keys_of_a_revert_are_shown(
    workspace: Workspace, alice: Toolbox, size: tuple[int, int], language: Language
) -> None:
    write(alice, "one\n", 0)
    async with dashboard(workspace, size=size, language=language) as user:
        await user.goes_to("2", "agents")
        await user.until(lambda: user.cursor("agents").agent.id == "alice", "alice")
        await user.press("V")
        await user.until(lambda: user.place == "RevertDialog", "the preview")
        screen = user.app.screen
        assert isinstance(screen, ConfirmDialog)
        keys = screen.key_hints().split(" · ")
        assert len(keys) > 3
        await user.sees(*keys)
