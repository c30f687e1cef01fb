"""Pictures of the merge screen and the commit, at each size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from calls import ok, refused
from syrupy.assertion import SnapshotAssertion
from tui.driver import MIDDLE, NARROW, User
from tui.pictures import SIZES, at_rest
from tui.recorded import NOON, REPORT, recorded
from tui.team import has_opened_merge
from watchroom import Workspace
from watchroom.kernel.journal import Journal
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp
from watchroom_tui.screens.merge.screen import MergeScreen

POLISHED = {
    "12 % more cargo than last year": "an eighth more cargo than last year",
    "Who pays for": "Which authority pays for",
    "- When does dredging begin?": "- When does dredging begin, and where?",
}
COUNTED = {
    "12 % more cargo than last year": "12.4 % more cargo than in 2024",
    "港口吞吐量增长了 12 %。": "港口吞吐量增长了 12.4 %。",
    "- When does dredging begin?": "- When does dredging begin?\n- What does it cost?",
}


def collision(root: Path) -> None:
    with Workspace.open(root, agents=["editor", "analyst"]) as workspace:
        editor, analyst = workspace.tools("editor"), workspace.tools("analyst")
        texts = [REPORT, REPORT, REPORT]
        for number, changes in ((1, POLISHED), (2, COUNTED)):
            for before, after in changes.items():
                texts[number] = texts[number].replace(before, after)
        call = {"filepath": "report.md"}
        ok(editor, "collab_write", **call, content=texts[0], message="first draft", expected_version=0)
        ok(editor, "collab_write", **call, content=texts[1], message="polish", expected_version=1)
        refused(
            analyst, "collab_write", **call, content=texts[2], message="exact figures", expected_version=1
        )


@pytest.fixture(scope="module")
def collided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    journal = recorded(tmp_path_factory.mktemp("collided"), collision)
    yield journal
    journal.close()


@asynccontextmanager
async def at_noon(journal: Journal, size: tuple[int, int], language: Language = "en") -> AsyncIterator[User]:
    """Run the live dashboard with a stopped clock, at the only conflict."""
    with TemporaryDirectory() as elsewhere, Workspace.open(elsewhere) as workspace:
        # An unrelated workspace to act on, because viewers have other keys.
        app = WatchroomApp(journal, place="team/", language=language, open_workspace=lambda: workspace)
        app.now = lambda: NOON  # type: ignore[method-assign]
        async with app.run_test(size=size, notifications=True) as pilot:
            user = User(app, pilot)
            await user.until(lambda: user.model.conflicts, "the conflict")
            await app.push_screen(MergeScreen(user.model.conflicts[0].row))
            await has_opened_merge(user)
            yield user


@pytest.mark.parametrize("size", SIZES)
async def test_the_merge_screen(collided: Journal, picture: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with at_noon(collided, size) as user:
        assert await at_rest(user) == picture


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_a_merge_half_done(
    collided: Journal, picture: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with at_noon(collided, size) as user:
        await user.press("B", "z")
        assert await at_rest(user) == picture


@pytest.mark.parametrize("size", [MIDDLE], ids=["120x40"])
async def test_the_editor_of_the_result(
    collided: Journal, picture: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with at_noon(collided, size) as user:
        await user.press("c", "e")
        assert await at_rest(user) == picture


@pytest.mark.parametrize("size", [MIDDLE], ids=["120x40"])
async def test_the_preview(collided: Journal, picture: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with at_noon(collided, size) as user:
        await user.press("c", "i", "d")
        await user.until(lambda: user.place == "PreviewDialog", "the preview")
        assert await at_rest(user) == picture


@pytest.mark.parametrize("size", [MIDDLE], ids=["120x40"])
async def test_the_merge_screen_in_chinese(
    collided: Journal, picture: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with at_noon(collided, size, "zh") as user:
        await user.press("A")
        assert await at_rest(user) == picture
