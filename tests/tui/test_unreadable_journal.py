"""A journal that cannot be read or written: the header says so, and the dashboard continues."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager

import pytest
from damage import break_content, journal_of
from tui.driver import MIDDLE, User, dashboard, running
from tui.team import write
from watchroom import Toolbox, Workspace
from watchroom.features.requests.rows import Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import Note
from watchroom.texts import LANGUAGES, Language
from watchroom_tui.app import WatchroomApp

pytestmark = [pytest.mark.slow(6), pytest.mark.sqlite("A server's tables belong to its owner.")]
SAID = {"en": "journal unreadable since", "zh": "起无法读取日志"}
LIVE = {"en": "● live", "zh": "● 实时"}


@contextmanager
def without_rows(workspace: Workspace) -> Iterator[None]:
    """Within the context the journal has no table of rows."""
    with closing(sqlite3.connect(journal_of(workspace.root), isolation_level=None)) as connection:
        connection.execute("ALTER TABLE rows RENAME TO moved_rows")
        yield
        connection.execute("ALTER TABLE moved_rows RENAME TO rows")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_header_says_that_the_journal_is_unreadable(
    workspace: Workspace, language: Language
) -> None:
    async with dashboard(workspace, size=MIDDLE, language=language) as user:
        with without_rows(workspace):
            await user.sees(SAID[language])
            assert not user.shows(LIVE[language])
        await user.sees(LIVE[language])
        assert not user.shows(SAID[language])


async def test_a_screen_that_cannot_read_does_not_end_the_dashboard(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    async with dashboard(workspace, size=MIDDLE) as user:
        with without_rows(workspace):
            await user.sees(SAID["en"])
            await user.goes_to("4", "files")
            await user.is_told("The journal could not be used")
        await user.sees(LIVE["en"])
        await user.goes_to("1", "overview")
        await user.goes_to("4", "files")
        await user.sees("v2 alice")


@pytest.mark.parametrize("key", ["r", "enter"])
async def test_keys_for_a_request_that_could_not_be_read_leave_the_keyboard_alive(
    workspace: Workspace, key: str
) -> None:
    asked = Request("prompt", "Which?")
    workspace.requests.ask(CallContext("alice"), "alice/mcp/1", asked)
    async with dashboard(workspace, size=MIDDLE) as user:
        await user.until(lambda: user.app.needs, "the need")
        with without_rows(workspace):
            await user.sees(SAID["en"])
            await user.goes_to("7", "requests")
            await user.is_told("The journal could not be used")
            await user.press(key)
        await user.sees(LIVE["en"])
        await user.press(key)
        await user.until(lambda: user.place == "TextInputDialog", "the answer")


async def test_a_damaged_request_is_reported_once_while_rows_arrive(workspace: Workspace) -> None:
    workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("prompt", "Which?"))
    break_content(workspace.root, "alice/mcp/1", 1, b"{", zone="request")
    async with dashboard(workspace, size=MIDDLE) as user:
        await user.until(lambda: user.app.needs, "the need")
        await user.goes_to("7", "requests")
        await user.is_told("The journal is damaged")
        for number in range(3):
            workspace.journal.append([Note("bob", "read", "collab", f"{number}.md")])
            await user.has_taken_in(workspace)
            await user.settle()
        assert sum("The journal is damaged" in each for each in user._told()) == 1


@asynccontextmanager
async def opened(workspace: Workspace, language: Language) -> AsyncIterator[User]:
    """Run the dashboard as the command does, with the workspace's folder, until it is live."""
    app = WatchroomApp(
        workspace.journal,
        place="team/",
        language=language,
        open_workspace=lambda: workspace,
        root=workspace.root,
    )
    async with running(app, MIDDLE, paints=False) as user:
        await user.sees(LIVE[language])
        yield user


@pytest.mark.parametrize(
    ("language", "said", "calm"),
    [("en", "disk full since", "all well"), ("zh", "起已满：无法记录", "一切正常")],
)
async def test_a_full_disk_is_not_all_well(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, language: Language, said: str, calm: str
) -> None:
    disk = os.statvfs(workspace.root)
    full = os.statvfs_result((*disk[:3], 0, 0, *disk[5:]))
    async with opened(workspace, language) as user:
        await user.sees(calm)
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", lambda _: full)
            await user.sees(said)
            assert not user.shows(calm)
            assert not user.shows(LIVE[language])
        await user.sees(LIVE[language], calm)


@pytest.mark.parametrize(("language", "said"), [("en", "folder missing since"), ("zh", "起不存在")])
async def test_a_missing_folder_is_shown(workspace: Workspace, language: Language, said: str) -> None:
    moved = f"{workspace.root}-moved"
    async with opened(workspace, language) as user:
        os.rename(workspace.root, moved)
        await user.sees(said)
        os.rename(moved, workspace.root)
        await user.sees(LIVE[language])
