"""The merge screen: three texts and the result, decided region by region."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from textual.widgets import OptionList
from tui.conflict_steps import commits, is_asked_for_a_message
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.team import CURRENT, INCOMING, PLAN, collide, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.algorithms.merge import join_regions, text_with_markers
from watchroom_tui.screens.merge.panes import ResultPane
from watchroom_tui.screens.merge.screen import MergeScreen
from watchroom_tui.widgets.editor import Editor
from watchroom_tui.widgets.text_pane import TextPane


def row_of(user: User, pane: str, text: str) -> int:
    """Return the line of a pane that shows ``text``, from the pane's top, -1 if there is none."""
    region = user.app.screen.query_one(f"#{pane}").region
    lines = [line[region.x : region.right] for line in user.lines()[region.y : region.bottom]]
    return next((number for number, line in enumerate(lines) if text in line), -1)


@pytest.mark.parametrize("size", [NARROW, MIDDLE])
async def test_both_texts_and_their_authors_are_seen_beside_each_other(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, size: tuple[int, int]
) -> None:
    collide(alice, bob)
    async with dashboard(workspace, size=size) as user:
        await opens_merge(user)
        await user.sees("current v2 · alice", "incoming · bob", "“alice's words”", "region 1 of 2 open")
        same_row = row_of(user, "current", "first, said alice")
        assert same_row == row_of(user, "incoming", "first, said bob") > 0
        if size == MIDDLE:
            assert row_of(user, "base", "first") == same_row
        await user.sees("‹ choose: c current")


async def test_changes_of_one_side_are_taken_by_default(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        assert row_of(user, "result", "# The plan") > 0


@pytest.mark.parametrize(
    ("keys", "first", "last"),
    [
        ("ci", ["alice"], ["bob"]),
        ("bB", ["alice", "bob"], ["bob", "alice"]),
        ("xc", [], ["alice"]),
        ("Ac", ["alice"], ["alice"]),
        ("Ai", ["bob"], ["bob"]),
        ("Ab", ["alice", "bob"], ["alice", "bob"]),
        ("AB", ["bob", "alice"], ["bob", "alice"]),
        ("Ax", [], []),
        (["c", "i", "left_square_bracket", "x"], [], ["bob"]),
        ("ciuc", ["alice"], ["alice"]),
        (["c", "i", "u", "u", "ctrl+r", "ctrl+r"], ["alice"], ["bob"]),
    ],
)
async def test_keys_decide_region_by_region_or_for_the_whole_file(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, keys: Sequence[str], first: list[str], last: list[str]
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press(*keys)
        await user.sees("all decided")
        wanted = "".join(
            [
                "# The plan\n\n",
                *(f"first, said {who}\n" for who in first),
                "\nmiddle\n\n",
                *(f"last, said {who}\n" for who in last),
            ]
        )
        assert join_regions(draft.state.regions) == wanted


async def test_the_mode_for_the_whole_file_shows_and_ends(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace, size=NARROW) as user:
        draft = await opens_merge(user)
        result = user.app.screen.query_one("#result")
        for key in ("A", "escape"):
            await user.press("A")
            await user.sees("WHOLE FILE:")
            await user.sees("the next choice applies to the whole file")
            assert result.has_class("-armed")
            await user.press(key)
            await user.sees_no("WHOLE FILE:")
            assert not result.has_class("-armed")
        await user.press("c")
        assert draft.left == 1, "one region was decided, not the whole file"


async def test_a_choice_for_the_whole_file_asks_before_replacing_decisions(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("c", "A", "i")
        await user.sees("1 of 2 regions are decided")
        await user.press("escape")
        await user.until(lambda: user.place == "merge", "the merge")
        assert draft.left == 1
        assert "first, said alice\n" in text_with_markers(draft.state.regions)
        await user.press("A", "c")
        await user.sees("all decided")
        await user.press("A", "i")
        await user.sees("2 of 2 regions are decided")
        await user.press("enter")
        await user.until(lambda: "said alice" not in join_regions(draft.state.regions), "all of bob's")
        await user.press("u")
        await user.until(lambda: "said bob" not in join_regions(draft.state.regions), "as it was before")


async def test_the_base_is_hidden_and_shown(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    collide(alice, bob)
    async with dashboard(workspace, size=NARROW) as user:
        await opens_merge(user)
        base = user.app.screen.query_one("#base")
        assert not base.display
        for shown in (True, False, True):
            await user.press("z")
            await user.until(lambda: base.display is shown, f"the base: {shown}")  # noqa: B023


async def test_the_panes_scroll_together(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    lines = [f"line {number}\n" for number in range(200)]
    late = [*lines]
    lines_now = [*lines]
    lines_now[100] = "one hundred, said alice\nand more of it\n"
    late[100] = "one hundred, said bob\n"
    write(alice, "".join(lines), 0)
    write(alice, "".join(lines_now), 1)
    bob.dispatch_tool_call(
        "collab_write",
        {"filepath": PLAN, "content": "".join(late), "message": "late", "expected_version": 1},
    )
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.until(lambda: row_of(user, "result", "‹ choose") > 0, "the region in the result")
        await user.until(
            lambda: row_of(user, "current", "said alice") == row_of(user, "incoming", "said bob") > 0,
            "both sides of the region on one line",
        )
        await user.press("G")
        for pane in ("result", "base", "current", "incoming"):
            await user.until(lambda: row_of(user, pane, "line 199") > 0, f"the end of {pane}")  # noqa: B023
        await user.press("tab", "g")
        for pane in ("result", "base", "current", "incoming"):
            await user.until(lambda: row_of(user, pane, "line 0") > 0, f"the start of {pane}")  # noqa: B023


async def test_revealing_a_region_does_not_undo_a_persons_scrolling(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    """A resize reveals the region one frame later, and a key may come before that."""
    lines = [f"line {number}\n" for number in range(200)]
    write(alice, "".join(lines), 0)
    write(alice, "".join([*lines[:100], "said alice\n", *lines[101:]]), 1)
    stale_write(bob, "".join([*lines[:100], "said bob\n", *lines[101:]]), 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.until(lambda: row_of(user, "result", "‹ choose") > 0, "the region in the result")
        screen = user.app.screen
        assert isinstance(screen, MergeScreen)
        panes = [screen.query_one(f"#{each}", TextPane) for each in ("current", "result", "incoming")]
        await user.until(lambda: all(each.max_scroll_y >= 100 for each in panes), "the texts, laid out")
        await user.settle()
        screen.arrange_sides()
        screen.query_one(ResultPane).action_scroll_to_end(1)
        await user.settle()
        await user.until(lambda: row_of(user, "incoming", "line 199") > 0, "the end")
        screen.arrange_sides()
        await user.until(lambda: row_of(user, "result", "‹ choose") > 0, "the region, once nobody scrolls")


async def test_a_region_is_written_by_hand(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("c", "e")
        assert user.app.focused is user.app.screen.query_one(Editor)
        await user.sees("<<<<<<< current")
        # From the first mark: four lines and the closing mark are deleted, and the typed text stays.
        for _ in range(5):
            await user.press("ctrl+k", "delete")
        await user.type("quits")
        await user.press("enter", "escape")
        await user.sees("all decided")
        assert join_regions(draft.state.regions) == "# The plan\n\nfirst, said alice\n\nmiddle\n\nquits\n"
        await user.press("u")
        assert draft.left == 1


async def test_remaining_marks_keep_the_region_open(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("e", "x", "escape")
        await user.until(lambda: user.pane == "result", "the end of writing")
        assert draft.left == 2


async def test_leaving_a_merge_keeps_its_decisions(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("c", "escape")
        await user.until(lambda: user.place == "files", "the files")
        assert await opens_merge(user) is draft
        await user.sees("1 open")
        await user.goes_to("1", "overview")
        assert await opens_merge(user) is draft


async def by_a_click_on_what_waits(user: User) -> None:
    await user.pilot.click(offset=(user.lines()[0].index("needs you"), 0))


async def by_the_key_of_a_screen(user: User) -> None:
    await user.pilot.click("#current", offset=(8, 1))
    await user.press("1")


async def by_the_palette(user: User) -> None:
    await user.press("ctrl+p")
    await user.until(lambda: user.place == "Palette", "the palette")
    await user.type("Everywhere: back")
    options = user.app.screen.query_one(OptionList)
    await user.until(lambda: options.option_count == 1, "one command")
    await user.press("enter")


@pytest.mark.parametrize("leaves", [by_a_click_on_what_waits, by_the_key_of_a_screen, by_the_palette])
async def test_an_unfinished_text_is_kept_however_the_merge_is_left(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, leaves: Callable[[User], Awaitable[None]]
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        screen = user.app.screen
        await user.press("A", "i", "e")
        await user.type("mine: ")
        await leaves(user)
        await user.until(lambda: screen not in user.app.screen_stack, "the end of the merge")
        assert await opens_merge(user) is draft
        await user.sees("mine: first, said bob")
        assert join_regions(draft.state.regions) == INCOMING.replace("first", "mine: first")


async def test_remaining_marks_are_reported_even_after_leaving_the_merge(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("e")
        await user.type("mine ")
        await by_the_key_of_a_screen(user)
        await user.is_told("still has conflict markers")


async def test_nothing_else_is_decided_while_the_person_writes(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("A", "i", "e")
        await user.type("mine: ")
        await user.pilot.click("#current", offset=(8, 1))
        await user.press("x", "u", "ctrl+r", "escape")
        await user.until(lambda: user.place == "files", "the files")
        assert join_regions(draft.state.regions) == INCOMING.replace("first", "mine: first")


async def test_a_click_goes_to_a_region(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.pilot.click("#current", offset=(8, row_of(user, "current", "last, said alice")))
        await user.press("i")
        assert [region.choice for region in draft.state.regions if region.kind == "conflict"] == [
            None,
            "incoming",
        ]


async def test_the_file_moves_on_while_a_person_decides(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("c")
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        await user.sees("current v3 · alice", "1 open")
        await user.press("i")
        assert join_regions(draft.state.regions) == (
            "# The plan\n\nfirst, said alice\n\nthe middle\n\nlast, said bob\n"
        )


async def test_a_newer_version_waits_until_the_person_has_written(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("A", "i", "e")
        await user.type("mine: ")
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        await user.has_taken_in(workspace)
        await user.type("and more, ")
        await user.press("escape")
        await user.sees("current v3 · alice")
        text = INCOMING.replace("middle", "the middle")
        assert join_regions(draft.state.regions) == text.replace("first,", "mine: and more, first,")


async def test_help_has_the_keys_of_a_merge(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("question_mark")
        await user.sees("Take both texts, incoming first")


async def test_a_write_to_no_file_is_merged_with_nothing(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    bob.dispatch_tool_call(
        "collab_write", {"filepath": "new.md", "content": "new\n", "message": "m", "expected_version": 4}
    )
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.sees("base none", "current none", "all decided")
        assert join_regions(draft.state.regions) == "new\n"


async def test_quitting_in_the_middle_of_a_merge_asks_first(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "q")
        await user.is_asked("Quit and discard: plan.md")
        await user.press("escape")
        await user.sees("1 open")
        await user.press("q")
        await user.is_asked("Quit and discard: plan.md")
        await user.press("enter")
        await user.until(lambda: user.app._exit, "the end")


async def test_quitting_does_not_ask_about_a_merge_that_others_settled_while_it_was_closed(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "escape")
        await user.until(lambda: user.place == "files", "the files")
        write(bob, INCOMING, 2)
        await user.has_taken_in(workspace)
        await user.press("q")
        await user.until(lambda: user.app._exit, "the end")


async def test_quitting_asks_about_a_merge_whose_agent_tried_again_while_it_was_closed(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "escape")
        await user.until(lambda: user.place == "files", "the files")
        stale_write(bob, "another text\n", 1)
        await user.has_taken_in(workspace)
        await user.press("q")
        await user.is_asked("Quit and discard: plan.md")


async def test_text_written_into_an_open_region_survives_a_newer_version(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("e", "down", "home")
        await user.type("by hand ")
        await user.press("escape")
        await user.is_told("still has conflict markers")
        await user.sees("by hand first, said alice", "2 open")
        write(alice, CURRENT.replace("first", "FIRST"), 2)
        await user.sees("current v3 · alice")
        assert row_of(user, "result", "by hand first, said alice") > 0
        assert row_of(user, "result", "FIRST, said alice") > 0


async def test_long_lines_scroll_sideways_together(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    long = "x" * 300
    write(alice, f"{long}\n", 0)
    write(alice, f"{long} alice at the end\n", 1)
    stale_write(bob, f"{long} bob at the end\n", 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press(*["right"] * 40)
        await user.until(lambda: row_of(user, "current", "alice at the end") > 0, "the end of one")
        await user.until(lambda: row_of(user, "incoming", "bob at the end") > 0, "the end of the other")
        await user.press(*["left"] * 40)
        await user.until(lambda: row_of(user, "current", "1▌ xxx") > 0, "the start")


async def test_line_ends_are_seen_where_they_are_mixed(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\ntwo\n", 0)
    write(alice, "one\ntwo\r\n", 1)
    stale_write(bob, "one\ntwo", 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.until(lambda: row_of(user, "current", "two␍") > 0, "the carriage return")
        assert row_of(user, "incoming", "two ⌁") > 0


async def test_a_change_of_all_line_ends_is_merged_apart_from_the_lines(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, root: Path
) -> None:
    lines = [f"line {number}" for number in range(30)]
    write(alice, "\r\n".join([*lines, ""]), 0)
    write(alice, "\n".join([*lines, ""]).replace("line 2\n", "line TWO\n"), 1)
    stale_write(bob, "\r\n".join(lines).replace("line 10\r", "line TEN\r"), 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.sees(
            "base v1 · alice · CRLF",
            "current v2 · alice · LF",
            "incoming · bob · CRLF, no final",
            "result · LF, no final newline",
            "all decided",
        )
        await user.press("w")
        await is_asked_for_a_message(user)
        await user.sees("v2 → v3 · LF → LF, no final newline")
        await user.press("enter")
        await user.until(lambda: not user.model.conflicts, "the settlement")
    expected = "\n".join(lines).replace("line 2\n", "line TWO\n").replace("line 10\n", "line TEN\n")
    assert (root / "collaborative/current" / PLAN).read_bytes().decode() == expected


async def test_a_merge_that_changes_only_line_ends_is_a_new_version(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, root: Path
) -> None:
    write(alice, "one\r\ntwo\r\n", 0)
    write(alice, "one\r\nTWO\r\n", 1)
    stale_write(bob, "one\ntwo\n", 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await commits(user)
        await user.until(lambda: not user.model.conflicts, "the settlement")
    assert (root / "collaborative/current" / PLAN).read_bytes() == b"one\nTWO\n"


async def test_a_newer_version_with_other_line_ends_keeps_every_choice(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, root: Path
) -> None:
    lines = [f"line {number}" for number in range(30)]
    text = "\n".join([*lines, ""])
    write(alice, text, 0)
    write(alice, text.replace("line 2\n", "alice\n"), 1)
    stale_write(bob, text.replace("line 2\n", "bob\n"), 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("i")
        newer = text.replace("line 2\n", "alice\n").replace("line 20\n", "newer\n")
        write(alice, newer.replace("\n", "\r\n"), 2)
        await user.sees("current v3 · alice · CRLF", "result · CRLF", "all decided")
        await commits(user)
        await user.until(lambda: not user.model.conflicts, "the settlement")
    expected = text.replace("line 2\n", "bob\n").replace("line 20\n", "newer\n")
    assert (root / "collaborative/current" / PLAN).read_bytes().decode() == expected.replace("\n", "\r\n")


async def test_the_editor_keeps_the_kind_of_indentation(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "if x:\n\ty = 1\n", 0)
    write(alice, "if x:\n\ty = 2\n", 1)
    stale_write(bob, "if x:\n\ty = 3\n", 1)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("c", "e", "home", "tab", "escape")
        await user.until(lambda: user.pane == "result", "the end of writing")
        assert join_regions(draft.state.regions) in ("if x:\n\t\ty = 2\n", "if x:\n\t\t\ty = 2\n")


async def test_the_editor_draws_no_control_characters(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    hostile = "\x1b[31mred\x07 \u202eabc\u2069 \u200b zero\n"
    write(alice, "one\n", 0)
    write(alice, hostile, 1)
    stale_write(bob, "\u202e" + hostile, 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("e", "shift+down", "down")
        await user.sees("<<<<<<< current")
        shown = "".join(user.lines())
        assert [each for each in shown if not each.isprintable()] == []


async def test_a_merge_of_a_missing_file_opens_nothing_else_below(workspace: Workspace, bob: Toolbox) -> None:
    stale_write(bob, "new\n", 4, "new.md")
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
