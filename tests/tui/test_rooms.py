"""The dashboard as a person uses it: keys in, screen out, and what it does to the workspace."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from calls import ok, refused
from textual.geometry import Offset
from textual.widgets import OptionList
from tui.driving import MIDDLE, NARROW, Desk, dashboard, past, seqs
from tui.recorded import SECOND, recorded
from watchroom import Toolbox, Workspace
from watchroom.model import Draft, Note
from watchroom_tui.actions import ROOMS, of_scope
from watchroom_tui.theme import DARK, LIGHT

PLAN = "plan.md"


def write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> None:
    ok(toolbox, "collab_write", filepath=path, content=text, message=text.strip(), expected_version=expected)


def stale_write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> int:
    arguments = {"filepath": path, "content": text, "message": text.strip(), "expected_version": expected}
    return int(refused(toolbox, "collab_write", **arguments)["conflict_id"])


def deliver(sender: Toolbox, receiver: str, name: str, content: str = "data") -> None:
    ok(sender, "handoff_file", to_agent=receiver, filename=name, content=content, message=f"about {name}")


@pytest.fixture
def conflict(alice: Toolbox, bob: Toolbox) -> int:
    """Three files with versions; bob's write to plan.md was refused. Gives the number of that row."""
    write(alice, "another\n", 0, "another.md")
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    number = stale_write(bob, "late\n", 1)
    write(alice, "zoo\n", 0, "zoo.md")
    write(alice, "three\n", 2)
    return number


# -- rooms


async def test_number_keys_go_to_the_rooms(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        assert desk.place == "overview"
        for key, room in [*ROOMS[1:], ROOMS[0]]:
            await desk.goes_to(key, room)
            assert desk.pane is not None, "a pane has the keys at once"


async def test_empty_rooms_say_what_will_appear_and_how(root: Path) -> None:
    with Workspace.open(root) as workspace:
        async with dashboard(workspace) as desk:
            await desk.sees("watchroom init DIR --agent ID", "Nothing waits for you", "all well")
            await desk.goes_to("3", "handoffs")
            await desk.sees("Files that agents hand to each other will stand here.")
            await desk.goes_to("4", "files")
            await desk.sees("once one of")


async def test_a_commit_appears_on_the_overview_without_any_key(workspace: Workspace, alice: Toolbox) -> None:
    async with dashboard(workspace) as desk:
        ok(alice, "save_to_my_workspace", filename="fresh-notes.md", content="x", message="just now")
        await desk.sees("just now")
        assert any("● alice" in line and "save" in line for line in desk.lines())


async def test_what_another_opener_of_the_workspace_commits_appears_too(
    root: Path, workspace: Workspace
) -> None:
    async with dashboard(workspace) as desk:
        with Workspace.open(root, scan=False) as other:
            ok(other.tools("bob"), "save_to_my_workspace", filename="x.md", content="x", message="from afar")
        await desk.sees("from afar")


async def test_the_header_counts_what_needs_a_person(
    workspace: Workspace, bob: Toolbox, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await desk.sees("⚑ 1 need you")
        write(bob, "merged\n", 3)
        await desk.sees("✓ all well")


# -- going to what is urgent


async def test_urgent_goes_to_the_file_in_conflict_with_the_cursor_on_the_refused_row(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    deliver(alice, "bob", "less-urgent.md")
    async with dashboard(workspace) as desk:
        await desk.press("exclamation_mark")
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.until(lambda: getattr(desk.cursor("versions"), "seq", 0) == conflict, "the refused row")
        assert desk.cursor("shared").path == PLAN
        assert desk.pane == "versions"
        await desk.sees("+ late", "− one")


async def test_urgent_says_that_all_is_well_when_nothing_waits(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await desk.press("exclamation_mark")
        await desk.is_told("all well")
        assert desk.place == "overview"


async def test_urgent_finds_the_file_behind_a_filter(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("slash", *"zoo", "enter")
        await desk.until(lambda: len(desk.list("shared").items) == 1, "the filtered list")
        await desk.press("exclamation_mark")
        await desk.until(lambda: getattr(desk.cursor("versions"), "seq", 0) == conflict, "the refused row")


def two_deliveries(root: Path) -> None:
    """Two deliveries; the later one is acknowledged."""
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        deliver(alice, "bob", "one.md")
        deliver(alice, "bob", "two.md")
        ok(bob, "acknowledge_handoff", from_agent="alice", filename="two.md")


@pytest.mark.parametrize("keys", [("tab", "enter"), ("exclamation_mark",)], ids=["enter", "urgent"])
async def test_a_handoff_that_waits_long_is_gone_to(tmp_path: Path, keys: tuple[str, ...]) -> None:
    with closing(recorded(tmp_path, two_deliveries, apart=600 * SECOND)) as journal:
        async with past(journal, journal.last_seq()) as desk:
            await desk.sees("⚑ 1 need you")
            await desk.press(*keys)
            await desk.until(lambda: desk.place == "handoffs", "the handoffs")
            await desk.until(lambda: getattr(desk.cursor("deliveries"), "filename", "") == "one.md", "one.md")
            await desk.sees("“about one.md”")


async def test_a_handoff_that_was_made_just_now_bothers_nobody(tmp_path: Path) -> None:
    with closing(recorded(tmp_path, two_deliveries, apart=SECOND)) as journal:
        async with past(journal, journal.last_seq()) as desk:
            await desk.sees("✓ all well")


async def test_urgent_for_a_stubborn_agent_goes_to_that_agent(workspace: Workspace, charlie: Toolbox) -> None:
    for _ in range(3):
        refused(charlie, "save_to_my_workspace", filename="../x", content="")
    async with dashboard(workspace) as desk:
        await desk.press("exclamation_mark")
        await desk.until(lambda: desk.place == "agents", "the agents")
        await desk.until(lambda: desk.cursor("agents").agent.id == "charlie", "charlie")
        await desk.sees("denied: invalid_path")


async def test_urgent_for_an_edit_of_a_delivered_file_goes_to_that_handoff(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    deliver(alice, "bob", "raw.md")
    deliver(alice, "bob", "newer.md")
    (root / "handoff/alice_to_bob/raw.md").write_text("by hand", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as desk:
        await desk.press("exclamation_mark")
        await desk.until(lambda: desk.place == "handoffs", "the handoffs")
        await desk.until(lambda: getattr(desk.cursor("deliveries"), "filename", "") == "raw.md", "raw.md")


async def test_urgent_for_a_refused_first_write_shows_that_write(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    stale_write(bob, "never seen before\n", 3, "none.md")
    async with dashboard(workspace) as desk:
        await desk.press("exclamation_mark")
        await desk.sees("never seen before")


# -- agents


async def test_enter_on_an_agent_opens_its_files_and_previews_them(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="alpha\nbeta\n")
    ok(alice, "save_to_my_workspace", filename="b.md", content="gamma\n")
    ok(bob, "save_to_my_workspace", filename="mine.md", content="bob's own\n")
    async with dashboard(workspace) as desk:
        await desk.press("down", "enter")
        await desk.until(lambda: desk.place == "agents", "the agents")
        await desk.until(lambda: desk.cursor("agents").agent.id == "bob", "bob")
        await desk.sees("bob's own")
        await desk.press("up")
        await desk.sees("alpha", "beta")
        await desk.press("enter")
        assert desk.pane == "files"
        await desk.press("down")
        await desk.sees("gamma")
        await desk.press("enter")
        assert desk.pane == "preview"


async def test_the_preview_follows_the_file_and_marks_the_lines_that_changed(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="alpha\nbeta\n")
    async with dashboard(workspace) as desk:
        await desk.goes_to("2", "agents")
        await desk.sees("1  alpha", "2  beta")
        ok(alice, "save_to_my_workspace", filename="a.md", content="alpha\nBETA\n")
        await desk.sees("1  alpha", "2 ▌BETA")


async def test_a_file_of_one_very_long_line_is_shown_and_does_not_stop_the_dashboard(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="long.md", content="start " + "x" * 120_000 + " end")
    ok(bob, "save_to_my_workspace", filename="b.md", content="short")
    async with dashboard(workspace) as desk:
        await desk.goes_to("2", "agents")
        await desk.sees("1  start xxx")
        await desk.press("down")
        await desk.sees("1  short")


# -- panes, filter, back


async def test_tab_goes_through_the_panes_in_reading_order_and_shift_tab_back(
    workspace: Workspace,
) -> None:
    orders = {
        "overview": ["agents", "needs", "activity"],
        "agents": ["agents", "files", "preview", "rows"],
        "handoffs": ["deliveries", "matrix", "content"],
        "files": ["shared", "versions", "diff"],
        "activity": ["rows"],
    }
    async with dashboard(workspace) as desk:
        for key, room in ROOMS:
            if room != "overview":
                await desk.goes_to(key, room)
            seen = []
            for _ in orders[room]:
                seen.append(desk.pane)
                await desk.press("tab")
            assert seen == orders[room]
            assert desk.pane == orders[room][0]
            await desk.press("shift+tab")
            assert desk.pane == orders[room][-1]


async def test_a_filter_works_as_you_type_enter_keeps_it_and_esc_clears_it(
    workspace: Workspace, conflict: int
) -> None:
    def shown(desk: Desk) -> list[str]:
        return [file.path for file in desk.list("shared").items]

    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        assert shown(desk) == ["another.md", PLAN, "zoo.md"]
        await desk.press("slash", "o")
        assert shown(desk) == ["another.md", "zoo.md"]
        await desk.press("o")
        assert shown(desk) == ["zoo.md"]
        await desk.sees("/oo▏ · 1 shown")
        await desk.press("backspace", "enter")
        assert shown(desk) == ["another.md", "zoo.md"]
        await desk.sees("/o · 2 shown")
        await desk.press("escape")
        assert shown(desk) == ["another.md", PLAN, "zoo.md"]
        assert desk.place == "files"


async def test_the_cursor_stays_on_its_item_when_a_filter_is_cleared(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("slash", "o", "enter", "down", "escape")
        await desk.until(lambda: len(desk.list("shared").items) == 3, "all files")
        assert desk.cursor("shared").path == "zoo.md"


async def test_what_is_typed_into_a_filter_does_nothing_else(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("slash", *"q1jgyrt?!")
        assert desk.place == "files"
        assert desk.app.theme == DARK
        await desk.sees("/q1jgyrt?!▏ · 0 shown", "Nothing here matches 'q1jgyrt?!'")
        await desk.press("escape")
        assert len(desk.list("shared").items) == 3


async def test_esc_goes_back_to_the_room_before_with_its_cursor_where_it_was(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(60):
        ok(alice, "save_to_my_workspace", filename=f"n{n}.md", content="x")
    async with dashboard(workspace) as desk:
        await desk.press("tab", "tab", *["down"] * 40)
        item, top = desk.cursor("activity"), desk.list("activity").scroll_offset.y
        assert top > 0
        await desk.goes_to("4", "files")
        await desk.goes_to("3", "handoffs")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "overview", "the overview")
        assert desk.pane == "activity"
        assert desk.cursor("activity") == item
        assert desk.list("activity").scroll_offset.y == top
        await desk.press("escape")
        assert desk.place == "overview", "there is nowhere further back"


async def test_enter_on_a_row_shows_it_whole_and_esc_closes_it(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="the content itself", message="the message")
    async with dashboard(workspace) as desk:
        await desk.press("tab", "tab", "enter")
        await desk.until(lambda: desk.place == "RowScreen", "the row")
        await desk.sees("save_to_my_workspace", "alice/a.md", "the message", "the content itself", "sha-256")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "overview", "the overview")
        assert desk.pane == "activity"


# -- lists hold still


async def test_a_list_that_is_read_holds_still_offers_the_new_and_g_lets_them_in(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(5):
        ok(alice, "save_to_my_workspace", filename=f"old{n}.md", content="x")
    async with dashboard(workspace) as desk:
        await desk.press("tab", "tab", "down", "down")
        before, item = seqs(desk.list("activity").items), desk.cursor("activity")
        for n in range(3):
            ok(alice, "save_to_my_workspace", filename=f"new{n}.md", content="x")
        await desk.sees("3 new ↑")
        assert seqs(desk.list("activity").items) == before
        assert desk.cursor("activity") == item
        await desk.press("g")
        await desk.sees_no("3 new ↑")
        assert desk.cursor("activity").path == "alice/new2.md"
        ok(alice, "save_to_my_workspace", filename="live-again.md", content="x")
        await desk.until(lambda: desk.cursor("activity").path == "alice/live-again.md", "the newest row")


async def test_other_lists_keep_the_cursor_on_its_item_while_they_change(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("down")
        assert desk.cursor("shared").path == PLAN
        write(alice, "x\n", 0, "aaa.md")
        await desk.until(lambda: len(desk.list("shared").items) == 4, "the new file")
        assert desk.cursor("shared").path == PLAN


# -- rolling back


async def choose_version(desk: Desk, version: int) -> None:
    """Put the cursor on a version of plan.md."""
    await desk.goes_to("4", "files")
    await desk.until(lambda: len(desk.list("shared").items) == 3, "the files")
    await desk.press("down")
    await desk.until(lambda: [row.path for row in desk.list("versions").items][:1] == [PLAN], "its versions")
    await desk.press("tab", "G")
    await desk.until(lambda: desk.cursor("versions").version == 1, "version 1")
    for _ in range(version - 1):
        await desk.press("up")
    await desk.until(lambda: desk.cursor("versions").version == version, f"version {version}")


async def test_rolling_back_asks_first_and_no_changes_nothing(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await choose_version(desk, 1)
        rows = workspace.journal.last_seq()
        for answer in ("n", "escape"):
            await desk.press("r")
            await desk.is_asked("Bring plan.md back to version 1? This makes version 4; nothing is lost.")
            await desk.press(answer)
            await desk.until(lambda: desk.place == "files", "the files")
        assert workspace.journal.last_seq() == rows


async def test_rolling_back_makes_a_new_version_in_the_persons_name(
    root: Path, workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await choose_version(desk, 1)
        await desk.press("r")
        await desk.until(lambda: desk.place == "QuestionScreen", "the question")
        await desk.press("y")
        await desk.is_told("plan.md is version 1 again, as its version 4.")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert (head.version, head.actor, head.tool) == (4, "human:dana", "collab_rollback")
        assert workspace.journal.content(head.seq) == "one\n"
        assert (root / "collaborative/current" / PLAN).read_text(encoding="utf-8") == "one\n"
        await desk.sees("v4", "✓ all well")
        assert workspace.verify() == []


async def test_the_current_version_and_a_refused_write_cannot_be_brought_back(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await choose_version(desk, 1)
        rows = workspace.journal.last_seq()
        await desk.press("g", "r")
        await desk.is_told("Version 3 is the current one already.")
        await desk.press("down", "r")
        await desk.is_told("Only an accepted version can be brought back.")
        assert desk.cursor("versions").seq == conflict
        assert workspace.journal.last_seq() == rows


async def test_d_compares_with_the_current_version_and_back(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await choose_version(desk, 1)
        await desk.sees("v0 → v1", "+ one")
        await desk.press("d")
        await desk.sees("v1 → v3", "− one", "+ three")
        await desk.press("d")
        await desk.sees("v0 → v1")


# -- the past


async def test_in_the_past_nothing_can_be_rolled_back(workspace: Workspace, conflict: int) -> None:
    last = workspace.journal.last_seq()
    async with past(workspace.journal, last) as desk:
        await choose_version(desk, 1)
        await desk.press("r")
        await desk.is_told("This is a look into the past: nothing can be changed here.")
        assert desk.place == "files"
        assert workspace.journal.last_seq() == last


async def test_in_the_past_every_room_shows_that_moment_only(
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
    async with past(workspace.journal, moment) as desk:
        await desk.sees("◷", "1 need you")
        assert desk.list("activity").items[0].seq == moment
        await desk.goes_to("2", "agents")
        await desk.sees("as it was then")
        assert [row.path for row in desk.list("files").items] == ["alice/then.md"]
        assert max(seqs(desk.list("rows").items)) <= moment
        await desk.goes_to("3", "handoffs")
        assert [each.filename for each in desk.list("deliveries").items] == ["then.md"]
        await desk.goes_to("4", "files")
        await desk.press("down")
        await desk.until(lambda: len(desk.list("versions").items) == 4, "its versions then")
        assert max(seqs(desk.list("versions").items)) <= moment


async def test_in_the_past_the_activity_ends_at_that_moment(workspace: Workspace, conflict: int) -> None:
    moment = conflict
    async with past(workspace.journal, moment) as desk:
        await desk.goes_to("8", "activity")
        await desk.until(lambda: desk.list("rows").items, "rows")
        assert desk.list("rows").items[0].seq == moment


async def test_in_the_past_acts_are_not_offered(workspace: Workspace, conflict: int) -> None:
    async with past(workspace.journal, workspace.journal.last_seq()) as desk:
        await desk.goes_to("4", "files")
        await desk.until(lambda: desk.list("shared").items, "the files")
        assert not desk.shows("r roll back")


# -- all rows


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


# -- help, theme, clipboard, palette, mouse


async def test_help_and_rows_close_with_esc_and_with_q(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        for opening in (("question_mark",), ("G", "tab", "tab", "enter")):
            for closing_key in ("escape", "q"):
                await desk.press(*opening)
                await desk.until(lambda: desk.place != "overview", "what lies over the room")
                await desk.press(closing_key)
                await desk.until(lambda: desk.place == "overview", "the overview")
                await desk.press("shift+tab", "shift+tab") if len(opening) > 1 else None


@pytest.mark.parametrize(("key", "room"), [("4", "files"), ("3", "handoffs"), ("8", "activity")])
async def test_help_shows_the_keys_of_this_room_first(workspace: Workspace, key: str, room: str) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to(key, room)
        await desk.press("question_mark")
        await desk.until(lambda: desk.place == "HelpScreen", "the help")
        text = "\n".join(desk.lines())
        own, everywhere = of_scope(room)[0].help(desk.app.words), "Everywhere"
        assert own in text
        assert text.index(own) < text.index(everywhere)
        others = {"files", "handoffs", "activity"} - {room}
        assert not any(of_scope(other)[0].help(desk.app.words) in text for other in others)
        await desk.press("escape")
        await desk.until(lambda: desk.place == room, room)


async def test_asking_for_help_twice_needs_one_esc(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await desk.press("question_mark", "question_mark", "escape")
        assert desk.place == "overview"


async def test_t_flips_between_dark_and_light(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        dark = desk.app.screen.styles.background
        await desk.press("t")
        assert desk.app.theme == LIGHT
        assert desk.app.screen.styles.background != dark
        await desk.press("t")
        assert desk.app.theme == DARK
        assert desk.app.screen.styles.background == dark


async def test_y_copies_the_path_under_the_cursor(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("down", "y")
        assert desk.app.clipboard == PLAN
        await desk.is_told("Copied.")


async def test_the_palette_lists_the_actions_of_here_and_runs_them(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("ctrl+p")
        palette = await offered(desk)
        for action in of_scope("app", "files"):
            assert any(action.help(desk.app.words) in each for each in palette), action.id
        assert not any("not acknowledged" in each for each in palette), "that is for the handoffs"
        await desk.type("Activity")
        await desk.until(lambda: len(options(desk)) == 1, "the one that matches")
        await desk.press("enter")
        await desk.until(lambda: desk.place == "activity", "the activity room")


async def offered(desk: Desk) -> list[str]:
    """What the open palette offers, as text."""
    await desk.until(lambda: desk.place == "CommandPalette", "the palette")
    await desk.until(lambda: options(desk), "commands")
    return options(desk)


def options(desk: Desk) -> list[str]:
    found = desk.app.screen.query_one(OptionList)
    return [str(found.get_option_at_index(index).prompt) for index in range(found.option_count)]


async def test_rooms_keys_and_rows_can_be_clicked(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        footer = desk.lines()[-1]
        await desk.pilot.click(offset=(footer.index("Files"), len(desk.lines()) - 1))
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.sees("zoo.md")
        line = next(n for n, text in enumerate(desk.lines()) if "zoo.md" in text)
        await desk.pilot.click(offset=(5, line))
        await desk.until(lambda: desk.cursor("shared").path == "zoo.md", "zoo.md")
        await desk.pilot.click(offset=(5, line), times=2)
        await desk.until(lambda: desk.pane == "versions", "the versions")


# -- handoffs


async def test_the_handoffs_show_message_marks_and_counts_and_a_hides_the_acknowledged(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice, "bob", "one.md", "first content")
    deliver(alice, "bob", "two.md", "second content")
    ok(bob, "acknowledge_handoff", from_agent="alice", filename="one.md", message="thank you")
    async with dashboard(workspace) as desk:
        await desk.goes_to("3", "handoffs")
        await desk.sees("second content", "“about two.md”", "2 ✉1")
        await desk.press("down")
        await desk.sees("first content", "thank you")
        await desk.press("a")
        await desk.until(lambda: len(desk.list("deliveries").items) == 1, "only what is open")
        assert desk.cursor("deliveries").filename == "two.md"
        await desk.press("a")
        await desk.until(lambda: len(desk.list("deliveries").items) == 2, "all")


# -- narrow screens


async def test_below_100_columns_one_pane_shows_and_tabs_name_the_others(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace, size=NARROW) as desk:
        assert desk.shown_panes() == ["agents"]
        await desk.sees("Agents 3", "Needs you 1", "Activity ")
        await desk.press("tab")
        assert desk.shown_panes() == ["needs"]
        await desk.sees("bob ↔ alice")
        tabs = desk.lines()[1]
        await desk.pilot.click(offset=(tabs.index("Activity"), 1))
        await desk.until(lambda: desk.shown_panes() == ["activity"], "the activity")
        assert desk.pane == "activity"


async def test_above_100_columns_all_panes_show_and_there_are_no_tabs(workspace: Workspace) -> None:
    async with dashboard(workspace, size=(100, 30)) as desk:
        assert desk.shown_panes() == ["agents", "needs", "activity"]
        assert not desk.shows("tab ⇄")


async def test_every_pane_of_every_room_can_be_reached_and_used_at_80_by_24(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="the preview\n")
    deliver(alice, "bob", "one.md", "the delivery")
    wanted = {
        "overview": ["● alice", "⚔ conflict", "hand over"],
        "agents": ["● alice", "a.md", "the preview", "hand over"],
        "handoffs": ["about one.md", "1 ✉1", "the delivery"],
        "files": [PLAN, "●─ v1", "+ another"],
        "activity": ["hand over"],
    }
    async with dashboard(workspace, size=NARROW) as desk:
        for key, room in ROOMS:
            if room != "overview":
                await desk.goes_to(key, room)
            for text in wanted[room]:
                await desk.sees(text)
                assert len(desk.shown_panes()) == 1
                assert desk.pane == desk.shown_panes()[0]
                await desk.press("tab")


async def test_at_80_by_24_a_conflict_is_found_seen_and_rolled_back(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace, size=NARROW) as desk:
        await desk.press("exclamation_mark")
        await desk.sees("│╰◌✗")
        await desk.press("enter")
        await desk.sees("+ late")
        await desk.until(lambda: desk.pane == "diff", "the keys in the changes")
        await desk.press("shift+tab")
        await desk.until(lambda: desk.pane == "versions", "the keys in the versions")
        await desk.press("down", "r")
        await desk.is_asked("back to version 2?")
        await desk.press("y")
        await desk.until(lambda: not workspace_needs(desk), "nothing open any more")


def workspace_needs(desk: Desk) -> list[str]:
    return [need.kind for need in desk.model.needs]


async def test_the_tabs_count_what_the_panes_hold_now(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace, size=NARROW) as desk:
        await desk.goes_to("4", "files")
        await desk.until(lambda: len(desk.list("versions").items) == 1, "the versions of another.md")
        await desk.sees("Versions 1")


async def test_resizing_to_80_columns_and_back_keeps_focus_and_cursor(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(50):
        ok(alice, "save_to_my_workspace", filename=f"n{n}.md", content="x")
    async with dashboard(workspace) as desk:
        await desk.press("tab", "tab", *["down"] * 30)
        item = desk.cursor("activity")
        for size in (NARROW, MIDDLE):
            await desk.pilot.resize_terminal(*size)
            await desk.until(lambda size=size: desk.app.size == size, str(size))  # type: ignore[misc]
            await desk.until(
                lambda size=size: len(desk.shown_panes()) == (1 if size == NARROW else 3),  # type: ignore[misc]
                "the panes for that width",
            )
            assert desk.pane == "activity"
            assert desk.cursor("activity") == item
            await desk.until(lambda: desk.shows(item.path.removeprefix("alice/")), "the line of the cursor")


async def test_a_pane_that_was_clicked_is_the_one_that_stays_when_the_screen_gets_narrow(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        needs = desk.list("needs")
        await desk.pilot.click(needs, offset=Offset(3, 1))
        assert desk.pane == "needs"
        await desk.pilot.resize_terminal(*NARROW)
        await desk.until(lambda: len(desk.shown_panes()) == 1, "one pane")
        assert desk.shown_panes() == ["needs"]
        assert desk.pane == "needs"


# -- behind the journal's back


async def test_a_shared_file_edited_by_hand_becomes_a_need_while_the_dashboard_is_open(
    root: Path, workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        file = root / "collaborative/current/zoo.md"
        await desk.until(lambda: touched(file, desk, "outside"), "the need")
        await desk.sees("✎ outside", "changed by hand", "2 need you")


async def test_a_private_file_edited_by_hand_becomes_a_row_while_the_dashboard_is_open(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="x")
    async with dashboard(workspace) as desk:
        file = root / "agents/alice/a.md"
        await desk.until(lambda: touched(file, desk, ""), "the row")
        await desk.sees("edited by hand")


_written: dict[Path, int] = {}


def touched(file: Path, desk: Desk, kind: str) -> bool:
    """Edit the file, once its folder may be watched; whether the dashboard has noticed."""
    if file not in _written:
        _written[file] = 1
        file.write_text("by hand", encoding="utf-8")
    rows = [row for row in desk.model.recent if row.actor == "outside"]
    return bool(rows) and (not kind or kind in {need.kind for need in desk.model.needs})


# -- afterwards


async def test_commits_after_the_dashboard_is_gone_disturb_no_other_file(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with dashboard(workspace):
        pass
    with tempfile.TemporaryDirectory() as folder:
        # Whatever file numbers the dashboard used are given to these files now.
        paths = [os.path.join(folder, str(n)) for n in range(50)]
        numbers = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
        try:
            for n in range(20):
                ok(alice, "save_to_my_workspace", filename=f"{n}.md", content="x")
            assert [os.fstat(number).st_size for number in numbers] == [0] * len(numbers)
        finally:
            for number in numbers:
                os.close(number)
