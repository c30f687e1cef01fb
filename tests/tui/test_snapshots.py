"""What each screen looks like, at each size: ``pytest tests/tui/test_snapshots.py --snapshot-update`` renews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion
from tui.driving import MIDDLE, NARROW, WIDE, Desk, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import recorded
from watchroom import Workspace
from watchroom.journal import Journal
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


async def goes_to_overview(desk: Desk) -> None:
    await desk.until(lambda: len(desk.list("needs").items) > 0, "the needs")


async def goes_to_agents(desk: Desk) -> None:
    await desk.press("2", "down", "down")
    await desk.until(lambda: desk.place == "agents", "the agents")
    await desk.until(lambda: len(desk.list("files").items) == 2, "the researcher's files")
    await desk.until(lambda: "harbour.md v2" in str(desk.text("preview").border_title), "the preview")
    await desk.sees("▌- 12 % more cargo" if "preview" in desk.shown_panes() else "港口.md")


async def goes_to_handoffs(desk: Desk) -> None:
    await desk.goes_to("3", "handoffs")
    await desk.press("down")
    await desk.until(lambda: "港口" in str(desk.text("content").border_title), "the content")


async def goes_to_files(desk: Desk) -> None:
    await desk.press("exclamation_mark")
    await desk.until(lambda: desk.place == "files", "the files")
    await desk.until(lambda: "→ ✗" in str(desk.text("diff").border_title), "the refused write")


async def puts_versions_side_by_side(desk: Desk) -> None:
    await goes_to_files(desk)
    await desk.press("m", "G")
    await desk.until(lambda: "v1 → ✗" in str(desk.text("diff").border_title), "the marked and the first")
    if desk.app.size == NARROW:
        await desk.press("enter")
    else:
        await desk.press("s")
        await desk.until(
            lambda: any(line.count("## Findings") == 2 for line in desk.lines()), "the same on both sides"
        )


async def blames(desk: Desk) -> None:
    await goes_to_files(desk)
    await desk.press("b", "enter")
    await desk.until(lambda: "who wrote ✗" in str(desk.text("diff").border_title), "the authors")
    await desk.press("down", "down", "down", "down")
    await desk.until(lambda: "✗ · analyst" in str(desk.text("diff").border_subtitle), "the foot")


async def goes_to_activity(desk: Desk) -> None:
    await desk.goes_to("8", "activity")
    await desk.until(lambda: len(desk.list("rows").items) > 20, "the rows")


async def asks_for_help(desk: Desk) -> None:
    await goes_to_files(desk)
    await desk.press("question_mark")
    await desk.until(lambda: desk.place == "HelpDialog", "the help")


async def opens_a_row(desk: Desk) -> None:
    await goes_to_activity(desk)
    await desk.press("slash", *"exact figure", "enter")
    await desk.until(lambda: len(desk.list("rows").items) == 1, "that row")
    await desk.press("enter")
    await desk.until(lambda: desk.place == "RowDialog", "the row")
    await desk.until(lambda: len(desk.text("detail")._lines) > 15, "its content")


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
    """The screen as SVG, without what differs from run to run."""
    async with past(journal, journal.last_seq(), size=size, language=language) as desk:
        await SCREENS[screen](desk)
        if light:
            await desk.press("t")
        return await at_rest(desk)


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
    async with past(journal, journal.last_seq(), size=MIDDLE) as desk:
        await goes_to_files(desk)
        await desk.press("G")
        with Workspace.open(made, scan=False) as workspace:
            desk.app.push_screen(RestoreDialog(desk.cursor("versions"), workspace, desk.app.texts))
            await desk.is_asked("Bring report.md back to version 1?")
            svg = await at_rest(desk)
    assert svg == picture


async def test_a_picture_would_show_a_difference(journal: Journal) -> None:
    """The normalisation takes away nothing that a person could see."""
    english = await taken(journal, MIDDLE, "overview")
    assert english == await taken(journal, MIDDLE, "overview")
    assert english != await taken(journal, MIDDLE, "overview", light=True)
    for text in ("12:00:00", "report.md", "harbour"):
        assert text in english
