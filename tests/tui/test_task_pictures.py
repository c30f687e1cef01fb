"""Pictures of the tasks screen, at each size and in both languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion
from tui.driver import MIDDLE, NARROW, User, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import recorded
from tui.societies import needs_sandbox, runs, to_pane, to_tasks, works
from watchroom import Workspace
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal
from watchroom.texts import Language


def at_a_task(root: Path) -> None:
    """Create a task with two commands, the second failing, and an earlier, cancelled task."""
    with Workspace.open(root) as workspace:
        needs_sandbox(workspace)
        earlier = workspace.tasks.submit("human:dana", "写一首关于港口的诗。", root.parent / "poem")
        workspace.tasks.end(CallContext("human:dana"), earlier.id, "cancelled")
        works(workspace, root.parent / "calculator")
        runs(workspace, "eve", "printf 'one\\ntwo\\n港口\\n'")
        runs(workspace, "ada", "echo 'no test is here' >&2; exit 5")
        workspace.flush()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("tasks"), at_a_task)
    yield found
    found.close()


async def sees_tasks(user: User) -> None:
    await to_tasks(user)
    await user.until(lambda: len(user.list("files").items) == 2, "the files")
    await user.until(lambda: "5 · " in str(user.text("output").border_subtitle), "the output")
    await user.until(lambda: "README.md v1" in str(user.text("preview").border_title), "the preview")


async def looks_at_agents(user: User) -> None:
    await sees_tasks(user)
    await to_pane(user, "members")
    await user.press("down", "down")


async def looks_at_messages(user: User) -> None:
    await sees_tasks(user)
    await to_pane(user, "messages")


async def looks_at_output(user: User) -> None:
    await sees_tasks(user)
    await to_pane(user, "output")


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
    async with past(journal, journal.last_seq(), size=size) as user:
        await SCREENS[screen](user)
        assert await at_rest(user) == picture


async def test_in_chinese(journal: Journal, picture: SnapshotAssertion) -> None:
    language: Language = "zh"
    async with past(journal, journal.last_seq(), language=language) as user:
        await sees_tasks(user)
        assert await at_rest(user) == picture


async def test_while_a_command_runs(journal: Journal, picture: SnapshotAssertion) -> None:
    begun = max(row.seq for row in journal.rows(0) if row.tool == "run_command")
    async with past(journal, begun + 1, size=MIDDLE) as user:
        await to_tasks(user)
        await user.sees("no test is here", "README.md v1")
        assert await at_rest(user) == picture
