"""Pictures of boards, at each size and in both languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from calls import ok, refused
from syrupy.assertion import SnapshotAssertion
from team_boards import DECISIONS, MILESTONES, TASKS, TEAM
from tui.driver import MIDDLE, NARROW, User, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import recorded
from watchroom import Workspace
from watchroom.kernel.journal import Journal
from watchroom.texts import Language

GOALS = """1. A report that *anyone* can read
2. Every figure with [its source](https://example.org/figures)
   - the survey, `2026`
   - ~~hearsay~~ **counted** figures
3. 用中文写的概要 🚆

> Facts first,
> then opinions.

| Part | Who | Pages |
|:-----|:---:|------:|
| Data | ada | 12 |
| 概要 | anna | 3 |

```python
def pages(parts: list[int]) -> int:
    return sum(parts)  # both sides
```

---

<b>not bold</b> [@click=app.quit]nothing[/] &#8238;
"""


def at_work(root: Path) -> None:
    with Workspace.open(root, agents=TEAM) as workspace:
        ceo, anna, ada = (workspace.tools(name) for name in ("ceo", "anna", "ada"))
        on = {"board": "global"}
        for section, text in (
            ("Core goals", GOALS),
            ("Milestones", MILESTONES),
            ("Key decisions", DECISIONS),
        ):
            ok(ceo, "whiteboard_update_section", **on, section=section, content=text)
        ok(
            ceo,
            "whiteboard_update_section",
            **on,
            section="Issues and risks",
            content="- The survey ends late",
        )
        board = {"board": "bottom-layer-ada"}
        ok(ada, "whiteboard_update_section", **board, section="Current tasks", content=TASKS)
        board = {"board": "mid-layer-architect"}
        ok(
            anna,
            "whiteboard_update_section",
            **board,
            section="Knowledge",
            content="### Bridges\nThey *hold*.",
        )
        mine = {"content": "# Mine\n", "message": "my own view", "expected_version": 2}
        refused(ceo, "whiteboard_write", **on, **mine)
        workspace.flush()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("boards"), at_work)
    yield found
    found.close()


async def goes_to_boards(user: User) -> None:
    await user.goes_to("6", "boards")
    await user.until(lambda: len(user.list("summary").items) > 8, "what the board says")
    await user.until(lambda: "Global board" in user.words_in("#board") or not user.text("board").size, "it")


async def goes_to_the_board(user: User) -> None:
    await goes_to_boards(user)
    await user.press("enter")
    await user.sees("A report that anyone can read")


async def goes_to_the_summary(user: User) -> None:
    await goes_to_boards(user)
    await user.press("tab", "tab")
    await user.sees("☑ Outline agreed")


async def goes_to_versions(user: User) -> None:
    await goes_to_boards(user)
    await user.press("v")
    await user.until(lambda: user.place == "board_versions", "the versions")
    await user.until(lambda: len(user.list("versions").items) == 5, "its versions")
    await user.until(lambda: "survey" in user.words_in("#diff") or not user.text("diff").size, "the changes")


SCREENS = {
    "boards": goes_to_boards,
    "board": goes_to_the_board,
    "summary": goes_to_the_summary,
    "versions": goes_to_versions,
}


PICTURED: Final[Mapping[str, Sizes]] = {
    "boards": ALL,
    "board": (NARROW,),
    "summary": (NARROW,),
    "versions": (NARROW, MIDDLE),
}


@pytest.mark.parametrize(("screen", "size"), pictured(PICTURED))
async def test_every_screen(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int], screen: str
) -> None:
    async with past(journal, journal.last_seq(), size=size) as user:
        await SCREENS[screen](user)
        assert await at_rest(user) == picture


async def test_in_chinese(journal: Journal, picture: SnapshotAssertion) -> None:
    language: Language = "zh"
    async with past(journal, journal.last_seq(), language=language) as user:
        await goes_to_boards(user)
        assert await at_rest(user) == picture
