"""External edits are shown while the dashboard is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from tui.driver import User, dashboard
from watchroom import Toolbox, Workspace
from watchroom_tui.services.person_toolbox import WatchModeChanged

pytestmark = pytest.mark.slow(3)


async def test_a_shared_file_edited_by_hand_becomes_a_need_while_the_dashboard_is_open(
    root: Path, workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        file = root / "collaborative/current/zoo.md"
        await user.until(lambda: touched(file, user, "outside"), "the need")
        await user.sees("✎ external", "external edit", "2 need you")


async def test_a_private_file_edited_by_hand_becomes_a_row_while_the_dashboard_is_open(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="x")
    async with dashboard(workspace) as user:
        file = root / "agents/alice/a.md"
        await user.until(lambda: touched(file, user, ""), "the row")
        await user.sees("external edit")


async def test_a_board_edited_by_hand_becomes_a_need_while_the_dashboard_is_open(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    for board, file in (
        ("global", "global-whiteboard.md"),
        ("bottom-layer-alice", "whiteboards/bottom-layer-alice.md"),
    ):
        ok(workspace.tools_for_human("sam"), "whiteboard_append", board=board, content="x")
        async with dashboard(workspace) as user:
            await user.until(lambda file=file: touched(root / file, user, "outside"), "the need")  # type: ignore[misc]
            await user.sees(f"▤ {board}")
        needs = [need.row.seq for need in user.model.needs if need.kind == "outside"]
        ok(workspace.tools_for_human("sam"), "revert_outside_edit", filepath=board, conflict=needs[0])


async def test_the_header_says_that_files_are_polled(root: Path, workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.until(lambda: touched(root / "agents/alice/a.md", user, ""), "the files are watched")
        user.app.post_message(WatchModeChanged(2))
        await user.is_told("External edits are found by polling every 2 s")
        await user.sees("files polled")
        user.app.post_message(WatchModeChanged(None))
        await user.sees_no("files polled")


_written: dict[Path, int] = {}


def touched(file: Path, user: User, kind: str) -> bool:
    """Edit the file, once its folder may be watched. Return whether the dashboard has noticed."""
    if file not in _written:
        _written[file] = 1
        file.write_text("by hand", encoding="utf-8")
    rows = [row for row in user.model.recent if row.actor == "outside"]
    return bool(rows) and (not kind or kind in {need.kind for need in user.model.needs})
