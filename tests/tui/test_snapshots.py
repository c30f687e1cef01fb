"""Pictures of each screen at each size: ``pytest tests/tui/test_snapshots.py --snapshot-update`` updates
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion
from tui.driver import MIDDLE, NARROW, WIDE, User, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import recorded
from watchroom.kernel.journal import Journal
from watchroom.texts import Language
from watchroom_tui.dialogs.restore import RestoreDialog


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


@pytest.fixture(scope="module")
def journal(folder: Path) -> Iterator[Journal]:
    found = recorded(folder)
    yield found
    found.close()


@pytest.fixture
def made(folder: Path, journal: Journal) -> Path:
    """The workspace that the journal was recorded in."""
    return folder / "made"


async def goes_to_overview(user: User) -> None:
    await user.until(lambda: len(user.list("needs").items) > 0, "the needs")


async def goes_to_agents(user: User) -> None:
    await user.press("2", "down", "down")
    await user.until(lambda: user.place == "agents", "the agents")
    await user.until(lambda: len(user.list("files").items) == 2, "the researcher's files")
    await user.until(lambda: "harbour.md v2" in str(user.text("preview").border_title), "the preview")
    await user.sees("▌- 12 % more cargo" if "preview" in user.shown_panes() else "港口.md")


async def goes_to_handoffs(user: User) -> None:
    await user.goes_to("3", "handoffs")
    await user.press("down")
    await user.until(lambda: "港口" in str(user.text("content").border_title), "the content")


async def goes_to_files(user: User) -> None:
    await user.press("exclamation_mark")
    await user.until(lambda: user.place == "files", "the files")
    await user.until(lambda: "→ ✗" in str(user.text("diff").border_title), "the refused write")


async def puts_versions_side_by_side(user: User) -> None:
    await goes_to_files(user)
    await user.press("space", "G")
    await user.until(lambda: "v1 → ✗" in str(user.text("diff").border_title), "the marked and the first")
    if user.app.size == NARROW:
        await user.press("enter")
    else:
        await user.press("s")
        await user.until(
            lambda: any(line.count("## Findings") == 2 for line in user.lines()), "the same on both sides"
        )


async def blames(user: User) -> None:
    await goes_to_files(user)
    await user.press("L", "enter")
    await user.until(lambda: "authors of ✗" in str(user.text("diff").border_title), "the authors")
    await user.press("down", "down", "down", "down")
    await user.until(lambda: "✗ · analyst" in str(user.text("diff").border_subtitle), "the foot")


async def goes_to_activity(user: User) -> None:
    await user.goes_to("8", "activity")
    await user.until(lambda: len(user.list("rows").items) > 20, "the rows")


async def asks_for_help(user: User) -> None:
    await goes_to_files(user)
    await user.press("question_mark")
    await user.until(lambda: user.place == "HelpDialog", "the help")


async def opens_a_row(user: User) -> None:
    await goes_to_activity(user)
    await user.press("slash", *"exact figure", "enter")
    await user.until(lambda: len(user.list("rows").items) == 1, "that row")
    await user.press("enter")
    await user.until(lambda: user.place == "RowDialog", "the row")
    await user.until(lambda: user.text("content").copied_text()[1] > 3, "its content")


SCREENS = {
    "overview": goes_to_overview,
    "agents": goes_to_agents,
    "handoffs": goes_to_handoffs,
    "files": goes_to_files,
    "sides": puts_versions_side_by_side,
    "blame": blames,
    "activity": goes_to_activity,
    "help": asks_for_help,
    "row": opens_a_row,
}


async def taken(
    journal: Journal, size: tuple[int, int], screen: str, *, language: Language = "en", light: bool = False
) -> str:
    """Return the screen as SVG, without parts that differ between runs."""
    async with past(journal, journal.last_seq(), size=size, language=language) as user:
        await SCREENS[screen](user)
        if light:
            await user.chooses("theme")
        return await at_rest(user)


PICTURED: Final[Mapping[str, Sizes]] = {
    "overview": ALL,
    "agents": ALL,
    "handoffs": (NARROW, MIDDLE),
    "files": ALL,
    "sides": (MIDDLE, WIDE),
    "blame": (NARROW, MIDDLE),
    "activity": (NARROW, MIDDLE),
    "help": (NARROW, MIDDLE),
    "row": (NARROW, MIDDLE),
}


@pytest.mark.parametrize(("screen", "size"), pictured(PICTURED))
async def test_every_screen_in_the_dark(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int], screen: str
) -> None:
    assert await taken(journal, size, screen) == picture


async def test_the_overview_in_light(journal: Journal, picture: SnapshotAssertion) -> None:
    assert await taken(journal, MIDDLE, "overview", light=True) == picture


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_the_overview_in_chinese(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int]
) -> None:
    assert await taken(journal, size, "overview", language="zh") == picture


async def test_the_question_before_a_rollback(
    made: Path, journal: Journal, picture: SnapshotAssertion
) -> None:
    async with past(journal, journal.last_seq(), size=MIDDLE) as user:
        await goes_to_files(user)
        await user.press("G")
        user.app.push_screen(RestoreDialog(user.cursor("versions"), user.app.texts))
        await user.is_asked("Roll report.md back to version 1?")
        svg = await at_rest(user)
    assert svg == picture


async def test_a_picture_would_show_a_difference(journal: Journal) -> None:
    """The normalisation removes no visible difference."""
    english = await taken(journal, MIDDLE, "overview")
    assert english == await taken(journal, MIDDLE, "overview")
    assert english != await taken(journal, MIDDLE, "overview", light=True)
    for text in ("12:00:00", "report.md", "harbour"):
        assert text in english
