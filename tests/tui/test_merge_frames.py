"""The merge screen answers a key with one final frame."""

from __future__ import annotations

from collections.abc import Sequence

from tui.driver import User, dashboard
from tui.pictures import at_rest
from tui.team import PLAN, opens_merge
from watchroom import Toolbox, Workspace
from watchroom_tui.widgets.text_pane import TextPane

LINES = 200


def long_conflict(alice: Toolbox, bob: Toolbox) -> None:
    """Let every tenth line differ between the two sides. Some lines are wider than the screen."""
    base = [f"line {number} {'of words ' * (number % 3 * 10)}\n" for number in range(LINES)]
    for toolbox, name, expected in ((alice, "", 0), (alice, "alice: ", 1), (bob, "bob: ", 1)):
        text = "".join(name * (number % 10 == 5) + line for number, line in enumerate(base))
        toolbox.dispatch_tool_call(
            "collab_write",
            {"filepath": PLAN, "content": text, "message": "long", "expected_version": expected},
        )


async def frames_after(user: User, key: str) -> Sequence[Sequence[str]]:
    """Return each screen drawn from ``key`` on, without the first line, which has the clock, and the
    scrollbars' columns, which Textual draws a frame later."""
    frames: list[Sequence[str]] = []
    count = user.app.post_display_hook

    def keep() -> None:
        count()
        frames.append([line[:-2] for line in user.lines()[1:]])

    user.app.post_display_hook = keep  # type: ignore[method-assign]
    await user.press(key)
    await at_rest(user)
    user.app.post_display_hook = count  # type: ignore[method-assign]
    return frames


async def test_the_first_frame_of_a_difference_is_final(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    long_conflict(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("A", "i")
        *frames, last = await frames_after(user, "d")
        assert user.place == "PreviewDialog"
        assert "@@ −3,7 +3,7 @@" in last[0]
        assert [frame for frame in frames if frame != last and "@@" in "".join(frame)] == []


async def test_the_other_panes_scroll_before_anything_is_drawn(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    long_conflict(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        screen = user.app.screen
        panes = [screen.query_one(f"#{each}", TextPane) for each in ("current", "result", "incoming")]
        await user.until(lambda: all(each.max_scroll_y >= 100 for each in panes), "the texts, laid out")
        panes[0].action_scroll_to_end(0)
        for turn, pane in enumerate(panes, 1):
            pane.action_scroll_by(30)
            pane.action_scroll_sideways(5)
            assert [each.scroll_offset for each in panes] == [(5 * turn, 30 * turn)] * 3


async def test_the_first_frame_of_the_editor_is_final(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    long_conflict(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press(*["right_square_bracket"] * 4)
        for _ in range(2):
            *frames, last = await frames_after(user, "e")
            shown = [at for at, line in enumerate(last) if "alice: line 45" in line]
            assert len(last) // 2 < shown[-1] < len(last) - 2
            assert [frame for frame in frames if frame != last and "edit freely" in "".join(frame)] == []
            *frames, last = await frames_after(user, "escape")
            assert [frame for frame in frames if frame != last and "‹ choose" in "".join(frame)] == []
