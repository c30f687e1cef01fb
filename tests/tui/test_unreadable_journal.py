"""A journal whose rows cannot be read: the header says so, and the dashboard continues."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from damage import journal_of
from tui.driver import MIDDLE, dashboard
from tui.team import write
from watchroom import Toolbox, Workspace
from watchroom.texts import LANGUAGES, Language

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
