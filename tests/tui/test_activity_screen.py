"""The activity screen: by outcome, by filter, and page by page down to the first."""

from __future__ import annotations

from calls import ok, refused
from tui.driving import Desk, dashboard, seqs
from watchroom import Toolbox, Workspace
from watchroom.model import Draft, Note


async def test_o_goes_through_the_outcomes(workspace: Workspace, alice: Toolbox, conflict: int) -> None:
    refused(alice, "save_to_my_workspace", filename="../x", content="")
    refused(alice, "read_from_workspace", agent_id="bob", filename="none.md")
    async with dashboard(workspace) as desk:
        await desk.goes_to("8", "activity")
        await desk.until(lambda: len(desk.list("rows").items) == workspace.journal.last_seq(), "all rows")
        for outcome in ("conflict", "denied", "failed"):
            await desk.press("o")
            await desk.until(
                lambda outcome=outcome: [row.outcome for row in desk.list("rows").items] == [outcome],  # type: ignore[misc]
                f"rows of outcome {outcome}",
            )
            await desk.sees(f"Activity · {outcome}")
        await desk.press("o")
        await desk.until(lambda: {row.outcome for row in desk.list("rows").items} == {"ok"}, "what went well")
        await desk.press("o")
        await desk.until(lambda: len(desk.list("rows").items) == workspace.journal.last_seq(), "all rows")


def many_notes(workspace: Workspace, count: int) -> None:
    drafts: list[Draft] = [
        Note(("alice", "bob")[n % 2], "collab_list", "collab", "", message=f"note {n:05d}")
        for n in range(count)
    ]
    workspace.journal.append(drafts)


async def read_to_the_end(desk: Desk) -> None:
    """Go down until the oldest row is reached."""

    def state() -> tuple[int, int]:
        return desk.cursor("rows").seq, len(desk.list("rows").items)

    while (before := state())[0] > 1:
        await desk.press("G")
        await desk.until(lambda before=before: state() != before, "older rows")  # type: ignore[misc]


async def test_activity_loads_older_rows_as_the_cursor_gets_there_down_to_the_first(
    workspace: Workspace,
) -> None:
    many_notes(workspace, 2_500)
    last = workspace.journal.last_seq()
    async with dashboard(workspace) as desk:
        await desk.goes_to("8", "activity")
        await desk.until(lambda: len(desk.list("rows").items) == 1_000, "the first page")
        await read_to_the_end(desk)
        assert seqs(desk.list("rows").items) == list(range(last, 0, -1))


async def test_the_filter_of_the_activity_looks_through_the_whole_journal(workspace: Workspace) -> None:
    many_notes(workspace, 2_500)
    async with dashboard(workspace) as desk:
        await desk.goes_to("8", "activity")
        await desk.until(lambda: desk.list("rows").items, "rows")
        await desk.press("slash", *"NOTE 00007", "enter")
        await desk.until(
            lambda: [row.message for row in desk.list("rows").items] == ["note 00007"], "that old row"
        )
        await desk.press("escape")
        await desk.until(lambda: len(desk.list("rows").items) == 1_000, "everything again")


async def test_rows_that_come_in_while_older_ones_are_read_cost_no_row(
    workspace: Workspace, alice: Toolbox
) -> None:
    many_notes(workspace, 2_500)
    async with dashboard(workspace) as desk:
        await desk.goes_to("8", "activity")
        await desk.until(lambda: len(desk.list("rows").items) == 1_000, "the first page")
        await desk.press("down")
        ok(alice, "save_to_my_workspace", filename="new.md", content="x")
        await desk.has_taken_in(workspace)
        await desk.sees("1 new ↑")
        await desk.press("G")
        await desk.until(lambda: len(desk.list("rows").items) > 1_500, "the second page")
        await desk.press("g")
        assert desk.cursor("rows").path == "alice/new.md"
        await read_to_the_end(desk)
        assert seqs(desk.list("rows").items) == list(range(workspace.journal.last_seq(), 0, -1))
