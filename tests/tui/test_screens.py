"""The screens: keys open them, empty ones tell what will appear, and new rows appear."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from tui.driver import User, dashboard
from tui.team import write
from watchroom import Toolbox, Workspace
from watchroom_tui.app import WatchroomApp
from watchroom_tui.keys.actions import SCREENS


async def test_number_keys_go_to_the_screens(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        assert user.place == "overview"
        for key, screen in [*SCREENS[1:], SCREENS[0]]:
            await user.goes_to(key, screen)
            assert user.pane is not None, "a pane has the keys at once"


async def test_every_screen_is_reached_wherever_the_dashboard_opens(workspace: Workspace) -> None:
    app = WatchroomApp(workspace.journal, place="team/", initial_screen="tasks")
    async with app.run_test(notifications=True) as pilot:
        user = User(app, pilot)
        await user.until(lambda: user.place == "tasks", "the tasks")
        for key, screen in SCREENS:
            await user.goes_to(key, screen)


async def test_empty_screens_say_what_will_appear_and_how(root: Path) -> None:
    with Workspace.open(root) as workspace:
        async with dashboard(workspace) as user:
            await user.sees("watchroom init DIR --agent ID", "Nothing needs you", "all well")
            await user.goes_to("3", "handoffs")
            await user.sees("Files that agents hand over appear here.")
            await user.goes_to("4", "files")
            await user.sees("Shared files appear here")


async def test_a_commit_appears_on_the_overview_without_any_key(workspace: Workspace, alice: Toolbox) -> None:
    async with dashboard(workspace) as user:
        ok(alice, "save_to_my_workspace", filename="fresh-notes.md", content="x", message="just now")
        await user.sees("just now")
        assert any("● alice" in line and "save" in line for line in user.lines())


async def test_commits_of_another_process_appear_too(root: Path, workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        with Workspace.open(root, scan=False) as other:
            ok(other.tools("bob"), "save_to_my_workspace", filename="x.md", content="x", message="from afar")
        await user.sees("from afar")


async def test_the_header_counts_what_needs_a_person(
    workspace: Workspace, bob: Toolbox, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.sees("⚑ 1 needs you")
        write(bob, "merged\n", 3)
        await user.sees("✓ all well")


async def test_a_model_received_while_a_screen_is_created_is_shown_on_it(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace) as user:
        made = user.app.switch_mode("agents")
        user.app.show_model()
        await made
        await user.until(lambda: len(user.list("agents").items) == 3, "the agents")
