"""Small terminals: everything is usable at 40 columns and 12 rows, and smaller ones show a notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from documents import create
from tui.driver import MIDDLE, NARROW, WIDE, User, dashboard
from tui.societies import works
from tui.team import collide, deliver, opens_merge
from watchroom import Toolbox, Workspace
from watchroom.agents.simulation import roster
from watchroom_tui.keys.actions import SCREENS
from watchroom_tui.widgets.frame import Footer, Header
from watchroom_tui.widgets.size_notice import LEAST_SIZE

TOO_SMALL = ((39, 12), (40, 11), (10, 3), (1, 1))


async def resizes(user: User, width: int, height: int) -> None:
    await user.pilot.resize_terminal(width, height)
    await user.until(lambda: user.app.screen.size == (width, height), f"{width}×{height}")
    await user.settle()


async def fits(user: User, where: str) -> None:
    """Check that all of the screen is visible: nothing is outside, and each pane has at least one line."""

    def is_seen() -> bool:
        screen = user.app.screen
        regions = [screen.query_one(f"#{pane}").content_region for pane in user.shown_panes()]
        frame = [screen.query_one(Header).region, screen.query_one(Footer).region]
        return (
            screen.max_scroll_y == 0 == screen.max_scroll_x
            and all(region.height > 0 and region.bottom <= LEAST_SIZE.height for region in regions)
            and (frame[0].y, frame[1].bottom) == (0, LEAST_SIZE.height)
        )

    await user.until(is_seen, f"all of {where}")


async def becomes_too_small(user: User, place: str) -> None:
    """Shrink the terminal step by step, and enlarge it again, which shows the same as before."""
    focused = user.app.focused
    for size in TOO_SMALL:
        await resizes(user, *size)
        assert user.place == "SizeNotice"
    await resizes(user, *LEAST_SIZE)
    await user.until(lambda: user.place == place, place)
    assert user.app.focused is focused


async def test_every_screen_and_dialog_can_be_used_at_40_by_12_and_none_ends_in_a_smaller_terminal(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, tmp_path: Path
) -> None:
    works(workspace, tmp_path / "calculator")
    deliver(alice, "bob", "one.md", "the delivery")
    create(alice, body="rga")
    ok(
        workspace.tools_for_human("dana"),
        "whiteboard_update_section",
        board="global",
        section="Team",
        content="x",
    )
    collide(alice, bob)
    async with dashboard(workspace, size=LEAST_SIZE) as user:
        for key, name in SCREENS:
            await user.goes_to(key, name)
            await fits(user, name)
        await becomes_too_small(user, "usage")
        await user.press("6", "o")
        await user.until(lambda: user.place == "OutlineDialog", "the headings")
        await becomes_too_small(user, "OutlineDialog")
        await user.press("escape", "N")
        await user.until(lambda: user.place == "NewTaskDialog", "the new task")
        await becomes_too_small(user, "NewTaskDialog")
        await user.press("escape")
        await opens_merge(user)
        await fits(user, "merge")
        await resizes(user, *TOO_SMALL[0])
        # A person can still look.
        await user.press("escape")
        assert user.place == "merge"


def _fits_above(user: User, bottom: int) -> bool:
    activity = user.list("activity")
    is_whole = activity.region.bottom == bottom and activity.content_region.height >= 2
    return is_whole and not user.app.screen.max_scroll_y


@pytest.mark.parametrize("size", [(80, 18), NARROW, (120, 24), MIDDLE, WIDE], ids=str)
async def test_the_overview_fits_with_many_needs_and_the_timeline(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, size: tuple[int, int]
) -> None:
    workspace.register([*workspace.config.agents.values(), *roster(12)])
    for number in range(14):
        collide(alice, bob, f"{number}.md")
    async with dashboard(workspace, size=size) as user:
        await user.until(lambda: len(user.model.needs) >= 14, "the needs")
        for keys in ((), ("T",)):
            await user.press(*keys)
            bottom = size[1] - (3 if keys else 1)
            await user.until(lambda bottom=bottom: _fits_above(user, bottom), "all of the overview")  # type: ignore[misc]


async def test_the_needed_size_is_shown_even_in_three_lines(workspace: Workspace) -> None:
    async with dashboard(workspace, size=(10, 3)) as user:
        await user.until(lambda: user.place == "SizeNotice", "the notice")
        assert [line.strip() for line in user.lines()] == ["Needs", "40×12, has", "10×3."]
        await user.press("a", "1", "exclamation_mark")
        assert user.place == "SizeNotice"
        await resizes(user, 80, 24)
        await user.until(lambda: user.place == "overview", "the overview")
