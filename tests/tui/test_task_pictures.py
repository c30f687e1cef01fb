"""What the tasks screen looks like, at each size and in both languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion
from tui.driving import MIDDLE, NARROW, Desk, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import recorded
from tui.societies import needs_sandbox, runs, to_pane, to_tasks, works
from watchroom import Workspace
from watchroom.journal import Journal
from watchroom.texts import Language


def at_a_task(root: Path) -> None:
    """A task with two commands, the second of which fails; and an earlier one that was cancelled."""
    with Workspace.open(root) as workspace:
        needs_sandbox(workspace)
        earlier = workspace.tasks.submit("human:dana", "写一首关于港口的诗。", root.parent / "poem")
        workspace.tasks.end("human:dana", earlier.id, "cancelled")
        works(workspace, root.parent / "calculator")
        runs(workspace, "eve", "printf 'one\\ntwo\\n港口\\n'")
        runs(workspace, "ada", "echo 'no test is here' >&2; exit 5")
        workspace.flush()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("tasks"), at_a_task)
    yield found
    found.close()


async def sees_tasks(desk: Desk) -> None:
    await to_tasks(desk)
    await desk.until(lambda: len(desk.list("files").items) == 2, "the files")
    await desk.until(lambda: "exit 5" in str(desk.text("output").border_title), "the output")
    await desk.until(lambda: "README.md v1" in str(desk.text("preview").border_title), "the preview")


async def looks_at_agents(desk: Desk) -> None:
    await sees_tasks(desk)
    await to_pane(desk, "members")
    await desk.press("down", "down")


async def looks_at_messages(desk: Desk) -> None:
    await sees_tasks(desk)
    await to_pane(desk, "messages")


async def looks_at_output(desk: Desk) -> None:
    await sees_tasks(desk)
    await to_pane(desk, "output")


SCREENS = {
    "tasks": sees_tasks,
    "agents": looks_at_agents,
    "messages": looks_at_messages,
    "output": looks_at_output,
}


PICTURED: Final[Mapping[str, Sizes]] = {
    "tasks": ALL,
    "agents": (NARROW, MIDDLE),
    "messages": (NARROW,),
    "output": (NARROW,),
}


@pytest.mark.parametrize(("screen", "size"), pictured(PICTURED))
async def test_every_pane(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int], screen: str
) -> None:
    async with past(journal, journal.last_seq(), size=size) as desk:
        await SCREENS[screen](desk)
        assert await at_rest(desk) == picture


async def test_in_chinese(journal: Journal, picture: SnapshotAssertion) -> None:
    language: Language = "zh"
    async with past(journal, journal.last_seq(), language=language) as desk:
        await sees_tasks(desk)
        assert await at_rest(desk) == picture


async def test_while_a_command_runs(journal: Journal, picture: SnapshotAssertion) -> None:
    begun = max(row.seq for row in journal.rows(0) if row.tool == "run_command")
    async with past(journal, begun + 1, size=MIDDLE) as desk:
        await to_tasks(desk)
        await desk.sees("no test is here", "README.md v1")
        assert await at_rest(desk) == picture
