"""The activity screen: by outcome, by filter, and page by page to the first row."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from calls import ok, refused
from rich.cells import cell_len
from tui.driver import MIDDLE, User, dashboard, running, seqs
from tui.societies import begins, needs_sandbox, runs
from tui.team import write
from tui.test_unreadable_journal import without_rows
from watchroom import Toolbox, Workspace
from watchroom.features.overview.fold import RECENT
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.reads import RowPage, read_page
from watchroom.model import Draft, Note
from watchroom_tui.app import WatchroomApp
from watchroom_tui.screens.activity.paged_rows import PagedRowList


async def test_a_key_cycles_through_the_outcomes(workspace: Workspace, alice: Toolbox, conflict: int) -> None:
    refused(alice, "save_to_my_workspace", filename="../x", content="")
    refused(alice, "read_from_workspace", agent_id="bob", filename="none.md")
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) == workspace.journal.last_seq(), "all rows")
        for outcome in ("conflict", "denied", "failed"):
            await user.press("f")
            await user.until(
                lambda outcome=outcome: [row.outcome for row in user.list("rows").items] == [outcome],  # type: ignore[misc]
                f"rows of outcome {outcome}",
            )
            await user.sees(f"Activity · {outcome}")
        await user.press("f")
        await user.until(lambda: {row.outcome for row in user.list("rows").items} == {"ok"}, "what went well")
        await user.press("f")
        await user.until(lambda: len(user.list("rows").items) == workspace.journal.last_seq(), "all rows")


def many_notes(workspace: Workspace, count: int) -> None:
    drafts: list[Draft] = [
        Note(("alice", "bob")[n % 2], "collab_list", "collab", "", message=f"note {n:05d}")
        for n in range(count)
    ]
    workspace.journal.append(drafts)


async def read_to_the_end(user: User) -> None:
    """Go down until the oldest row is reached."""

    def state() -> tuple[int, int]:
        return user.cursor("rows").seq, len(user.list("rows").items)

    while (before := state())[0] > 1:
        await user.press("G")
        await user.until(lambda before=before: state() != before, "older rows")  # type: ignore[misc]


async def test_activity_loads_older_rows_as_the_cursor_gets_there_down_to_the_first(
    workspace: Workspace,
) -> None:
    many_notes(workspace, 2_500)
    last = workspace.journal.last_seq()
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) == 1_000, "the first page")
        await read_to_the_end(user)
        assert seqs(user.list("rows").items) == list(range(last, 0, -1))


async def test_the_filter_of_the_activity_looks_through_the_whole_journal(workspace: Workspace) -> None:
    many_notes(workspace, 2_500)
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "rows")
        await user.press("slash", *"NOTE 00007", "enter")
        await user.until(
            lambda: [row.message for row in user.list("rows").items] == ["note 00007"], "that old row"
        )
        await user.press("escape")
        await user.until(lambda: len(user.list("rows").items) == 1_000, "everything again")


async def test_a_page_for_an_old_filter_is_dropped(workspace: Workspace) -> None:
    many_notes(workspace, 10)
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        rows = user.list("rows")
        assert isinstance(rows, PagedRowList)
        await user.until(lambda: len(rows.items) == workspace.journal.last_seq(), "all rows")
        everything = list(rows.items)
        rows.show_only(RowFilter(actor="bob"), "")
        rows.add_older(PagedRowList.PageRequested(sys.maxsize, RowFilter(steps=False)), everything)
        await user.until(lambda: {row.actor for row in rows.items} == {"bob"}, "bob's rows")


async def test_a_row_is_reached_although_the_rows_are_being_loaded_again(workspace: Workspace) -> None:
    many_notes(workspace, 10)
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        rows = user.list("rows")
        assert isinstance(rows, PagedRowList)
        await user.until(lambda: len(rows.items) == workspace.journal.last_seq(), "all rows")
        rows.show_only(RowFilter(actor="bob", steps=False), "")
        wanted = next(row.seq for row in rows.items[3:] if row.actor == "bob")
        rows.move_to(wanted)
        await user.until(lambda: {row.actor for row in rows.items} == {"bob"}, "bob's rows")
        await user.settle()
        assert user.cursor("rows").seq == wanted


async def test_new_rows_leave_the_cursor_on_its_row_below_a_filter_of_the_last_time(
    workspace: Workspace,
) -> None:
    workspace.journal.append([Note("alice", "read", "collab", f"{number}.md") for number in range(5)])
    many_notes(workspace, RECENT)
    filters = {"activity.rows": ".md"}
    app = WatchroomApp(workspace.journal, place="team/", open_workspace=lambda: workspace, filters=filters)
    async with running(app, MIDDLE, paints=False) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) == 5, "the filtered rows")
        await user.press("down", "down")
        before = user.cursor("rows").seq
        for _ in range(2):
            many_notes(workspace, 1)
            await user.has_taken_in(workspace)
            await user.settle()
        assert user.cursor("rows").seq == before


@pytest.mark.sqlite("A server's tables belong to its owner.")
async def test_a_filter_that_could_not_be_applied_is_applied_later(workspace: Workspace) -> None:
    many_notes(workspace, 10)
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "all rows")
        with without_rows(workspace):
            await user.press("f")
            await user.is_told("The journal could not be used")
        many_notes(workspace, 1)
        await user.until(lambda: not user.list("rows").items, "no conflicts")


async def test_a_row_that_arrives_after_the_first_page_was_read_is_shown(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_notes(workspace, 10)
    is_read, may_answer = Event(), Event()

    def read_late(*given: Any, **more: Any) -> RowPage:
        page = read_page(*given, **more)
        is_read.set()
        may_answer.wait()
        return page

    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) == workspace.journal.last_seq(), "all rows")
        monkeypatch.setattr("watchroom_tui.screens.activity.screen.read_page", read_late)
        await user.press("z")
        await user.until(is_read.is_set, "the page")
        many_notes(workspace, 1)
        await user.has_taken_in(workspace)
        may_answer.set()
        await user.app.workers.wait_for_complete([each for each in user.app.workers if each.group == "pages"])
        await user.settle()
        assert len(user.list("rows").items) == workspace.journal.last_seq()


async def test_rows_arriving_during_a_page_load_lose_no_row(workspace: Workspace, alice: Toolbox) -> None:
    many_notes(workspace, 2_500)
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) == 1_000, "the first page")
        await user.press("down")
        ok(alice, "save_to_my_workspace", filename="new.md", content="x")
        await user.has_taken_in(workspace)
        await user.sees("1 new ↑")
        await user.press("G")
        await user.until(lambda: len(user.list("rows").items) > 1_500, "the second page")
        await user.press("g")
        assert user.cursor("rows").path == "alice/new.md"
        await read_to_the_end(user)
        assert seqs(user.list("rows").items) == list(range(workspace.journal.last_seq(), 0, -1))


async def test_messages_are_aligned_after_chinese_outcomes(
    workspace: Workspace, alice: Toolbox, tmp_path: Path
) -> None:
    needs_sandbox(workspace)
    begins(workspace, tmp_path / "calculator", "Build it.")
    write(alice, "The plan", 0)
    runs(workspace, "root", "echo printed")
    async with dashboard(workspace, language="zh") as user:
        await user.goes_to("8", "activity")
        await user.sees("退出码 0", "v1")
        lines = [line for line in user.lines() if "The plan" in line or "退出码 0" in line]
        starts = {
            cell_len(line[: line.index(text)])
            for line in lines
            for text in ("The plan", "echo printed")
            if text in line
        }
        assert len(lines) == 2
        assert len(starts) == 1
