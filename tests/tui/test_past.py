"""In the past every screen shows only that moment, and nothing can be changed."""

from __future__ import annotations

from calls import ok
from tui.driver import past, seqs
from tui.team import choose_version, deliver, write
from watchroom import Toolbox, Workspace


async def test_in_the_past_nothing_can_be_rolled_back(workspace: Workspace, conflict: int) -> None:
    last = workspace.journal.last_seq()
    async with past(workspace.journal, last) as user:
        await choose_version(user, 1)
        await user.press("R")
        await user.is_told("This is the past: nothing can be changed here.")
        assert user.place == "files"
        assert workspace.journal.last_seq() == last


async def test_in_the_past_a_conflict_is_looked_at_but_not_settled(
    workspace: Workspace, conflict: int
) -> None:
    last = workspace.journal.last_seq()
    async with past(workspace.journal, last) as user:
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "files", "the files")
        await user.until(lambda: getattr(user.cursor("versions"), "seq", 0) == conflict, "the refused row")
        await user.press("M")
        await user.is_told("This is the past: nothing can be changed here.")
        assert user.place == "files"


async def test_in_the_past_every_screen_shows_that_moment_only(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    deliver(alice, "bob", "then.md")
    ok(alice, "save_to_my_workspace", filename="then.md", content="as it was then\n")
    workspace.flush()
    moment = workspace.journal.last_seq()
    ok(alice, "save_to_my_workspace", filename="then.md", content="as it is now\n")
    ok(alice, "save_to_my_workspace", filename="later.md", content="x")
    deliver(alice, "bob", "later.md")
    write(bob, "later\n", 3)
    async with past(workspace.journal, moment) as user:
        await user.sees("PAST, ", "1 needs you")
        assert user.list("activity").items[0].seq == moment
        await user.goes_to("2", "agents")
        await user.sees("as it was then")
        assert [row.path for row in user.list("files").items] == ["alice/then.md"]
        assert max(seqs(user.list("rows").items)) <= moment
        await user.goes_to("3", "handoffs")
        assert [each.filename for each in user.list("deliveries").items] == ["then.md"]
        await user.goes_to("4", "files")
        await user.press("down")
        await user.until(lambda: len(user.list("versions").items) == 4, "its versions then")
        assert max(seqs(user.list("versions").items)) <= moment


async def test_in_the_past_the_activity_ends_at_that_moment(workspace: Workspace, conflict: int) -> None:
    moment = conflict
    async with past(workspace.journal, moment) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "rows")
        assert user.list("rows").items[0].seq == moment


async def test_in_the_past_acts_are_not_offered(workspace: Workspace, conflict: int) -> None:
    async with past(workspace.journal, workspace.journal.last_seq()) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: user.list("shared").items, "the files")
        assert not user.shows("r roll back")


async def test_in_the_past_no_answers_are_offered(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    async with past(workspace.journal, workspace.journal.last_seq()) as user:
        await user.sees("enter open")
        assert not user.shows("enter merge")
