"""What a new user does first takes few keys, at each size of the terminal."""

from __future__ import annotations

import pytest
from textual.widgets import OptionList
from tui.driver import MIDDLE, NARROW, WIDE, dashboard
from tui.team import write
from watchroom import Toolbox, Workspace

SIZES = (NARROW, MIDDLE, WIDE)


@pytest.mark.parametrize("size", SIZES)
async def test_the_text_of_a_file_is_read_in_two_keys_from_its_list(
    workspace: Workspace, alice: Toolbox, size: tuple[int, int]
) -> None:
    write(alice, "# Plan\nShip it.\n", 0)
    write(alice, "# Plan\nShip it soon.\n", 1)
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: user.list("shared").items, "the file")
        await user.press("enter")
        # The text, and not the difference.
        await user.sees("plan.md v2 · alice", "2 ▌Ship it soon.")


@pytest.mark.parametrize("size", SIZES)
async def test_a_budget_is_set_in_four_keys_without_a_syntax(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        await user.press("0", "e")
        await user.until(lambda: user.place == "BudgetDialog", "the form")
        await user.press("enter")
        await user.is_told("Budget of the team: $20.00.")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("word", "found"),
    [("theme", "light/dark"), ("buffers", "buffers"), ("undo", "revert")],
)
async def test_the_palette_finds_what_a_word_names(
    workspace: Workspace, word: str, found: str, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        await user.press("colon")
        await user.type(word)
        hits = user.app.screen.query_one(OptionList)
        await user.until(lambda: hits.option_count and found in str(hits.get_option_at_index(0).prompt), word)
