"""The documents screen: fields by type, live, with news marked, and at any past moment."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from damage import break_content
from documents import count, create, edit, get, put, tag
from textual.geometry import Offset
from tui.driver import User, dashboard, past
from watchroom import Row, Toolbox, Workspace
from watchroom.features.documents.replica import DocumentReplica
from watchroom.model import Zone
from watchroom_tui.screens.documents.document_pane import SLOWEST
from watchroom_tui.widgets.scrubber import Scrubber
from watchroom_tui.widgets.text_pane import TextPane

pytestmark = pytest.mark.slow(7)


@pytest.fixture
def board(alice: Toolbox, bob: Toolbox) -> None:
    create(alice, title="lww_register", body="rga", tags="or_set", config="lww_map", score="pn_counter")
    put(alice, "title", "Sprint 1")
    edit(alice, "insert", position=0, text="Alice was here.\n")
    get(bob, "body")
    edit(bob, "insert", position=16, text="Bob too.\n")
    tag(bob, "add", "urgent")
    put(alice, "config", {"theme": "dark"})
    count(alice, "increment", 5)
    count(bob, "increment", 3)


def view(user: User) -> TextPane:
    return user.app.screen.query_one("#document", TextPane)


def line_with(user: User, text: str) -> int:
    return next(number for number, line in enumerate(user.lines()) if text in line)


def styles_of(user: User, text: str) -> set[str]:
    """Return the styles of the rows that contain ``text``."""
    drawing = view(user)._drawing
    assert drawing is not None
    rows = (drawing.row(index, 200, is_top=False)[0] for index in range(len(drawing)))
    return {span.style for cell in rows for span in (*cell.gutter, *cell.text) if _says(cell.text, text)}


def _says(spans: object, text: str) -> bool:
    return text in "".join(span.text for span in spans)  # type: ignore[attr-defined]


async def test_each_field_is_shown_by_its_type(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("title  value  alice", "Sprint 1", "body  text  25 characters", "• urgent  bob")
        await user.sees("theme  dark  alice", "score  counter  8", "alice", "+5", "bob", "+3", "v8 of 8")


async def test_a_text_is_in_the_colours_of_its_writers(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("Alice was here.", "▍alice 64 %", "▍bob 36 %")
        of_alice, of_bob = styles_of(user, "Alice was here."), styles_of(user, "Bob too.")
        assert of_alice != of_bob


async def test_edits_appear_as_they_are_made_and_are_marked_as_new(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("Sprint 1")
        assert not styles_of(user, "Alice was here.") & {"accent"}
        put(alice, "title", "Sprint 2")
        get(alice, "body")
        edit(alice, "insert", position=5, text=", yes,")
        tag(alice, "add", "later")
        await user.sees("Sprint 2", "Alice, yes, was here.", "• later", "3 new since your last look")
        for text in ("Sprint 2", "Alice, yes,", "later"):
            assert "accent" in styles_of(user, text), text
        assert any(style.endswith("-new") for style in styles_of(user, "Alice, yes,"))
        assert "accent" not in styles_of(user, "Bob too.")
        await user.press("S")
        await user.sees_no("new since your last look")
        assert "accent" not in styles_of(user, "Sprint 2")


async def test_what_was_looked_at_is_not_new_although_a_long_text_is_still_read(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    get(alice, "body")
    edit(alice, "insert", position=0, text="".join(f"line {number}\n" for number in range(10_000)))
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("Sprint 1")
        put(alice, "title", "Sprint 2")
        await user.sees("Sprint 2", "1 new since your last look")
        await user.press("S")
        await user.sees_no("new since your last look")


async def test_changes_of_a_document_that_was_never_opened_are_marked_in_the_list(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    create(alice, "other", title="lww_register")
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("Sprint 1")
        assert not any("● other" in line for line in user.lines())
        put(alice, "title", "First", doc_id="other")
        await user.until(lambda: any("● other" in line for line in user.lines()), "the mark in the list")


async def test_what_came_while_one_was_elsewhere_is_counted_and_marked(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    create(alice, "other", text="rga")
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("Sprint 1")
        await user.press("down")
        await user.sees("text  text  0 characters")
        tag(alice, "remove", "urgent")
        put(alice, "title", "Sprint 2")
        await user.until(lambda: any("● doc1" in line for line in user.lines()), "the mark in the list")
        await user.press("up")
        await user.sees("Sprint 2", "− urgent", "2 new since your last look")


async def test_the_row_under_the_cursor_stays_where_it_is(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    get(alice, "body")
    edit(alice, "insert", position=0, text="".join(f"line {number}\n" for number in range(100)))
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("line 1")
        await user.press("enter", *["down"] * 40)
        at = line_with(user, "line 36 ")
        edit(alice, "insert", position=0, text="first\nsecond\nthird\n")
        await user.sees("v10 of 10")
        await user.settle()
        assert line_with(user, "line 36 ") == at
        drawing, cursor = view(user)._drawing, view(user)._cursor
        assert drawing is not None
        assert cursor is not None
        assert drawing.cell_texts(cursor) == ["line 36"]


async def test_every_earlier_version_can_be_shown(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("v8 of 8")
        for version in range(7, 0, -1):
            await user.press("left_square_bracket")
            await user.sees(f"v{version} of 8")
            then = DocumentReplica("doc1", workspace.journal, until=version).document.values()
            shown = view(user)._drawing
            assert shown is not None
            said = [text for index in range(len(shown)) for text in shown.cell_texts(index)]
            assert ("Sprint 1" in said) == (then["title"] == "Sprint 1")
            assert [line for line in said if line.startswith(("Alice", "Bob"))] == [
                line for line in str(then["body"]).split("\n") if line
            ]
            assert any(line == f"score  counter  {then['score']}" for line in said)
        await user.press("right_square_bracket")
        await user.sees("v2 of 8", 'alice  title = "Sprint 1"')
        await user.press("escape")
        await user.sees("● live  v8 of 8")


async def test_the_past_stays_while_the_document_goes_on(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("v8 of 8")
        await user.press("left_square_bracket")
        await user.sees("past  v7 of 8", "score  counter  5")
        count(alice, "increment", 100)
        await user.sees("v7 of 9")
        assert user.shows("score  counter  5")
        await user.press("escape")
        await user.sees("live  v9 of 9", "score  counter  108")


async def test_the_history_plays_to_its_end_and_is_live_again(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("v8 of 8")
        await user.press("greater_than_sign")
        await user.sees("▶ past  v1 of 8")
        await user.sees("▶ past  v4 of 8")
        await user.sees("● live  v8 of 8")


async def test_a_version_that_takes_long_to_read_is_played_all_the_same(
    workspace: Workspace, board: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("v8 of 8")
        may_read, asked, version = threading.Event(), [], user.app.journal.version

        def late(zone: Zone, path: str, number: int) -> Row | None:
            asked.append(number)
            assert may_read.wait(20)
            return version(zone, path, number)

        monkeypatch.setattr(user.app.journal, "version", late)
        await user.press("greater_than_sign")
        await user.until(lambda: asked == [1], "the first reading")
        # Twice as long as a version is shown, because nothing reports the absence of a change.
        await asyncio.sleep(2 * SLOWEST)
        may_read.set()
        await user.sees("▶ past  v1 of 8", "▶ past  v2 of 8", "● live  v8 of 8")


async def test_play_can_be_paused_and_goes_on_from_there(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("v8 of 8")
        await user.press("greater_than_sign")
        await user.sees("▶ past  v2 of 8")
        await user.press("greater_than_sign")
        await user.sees("⏸ past")
        await user.press("greater_than_sign")
        await user.sees("● live  v8 of 8")


async def test_the_mouse_goes_to_any_share_of_the_history(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("v8 of 8")
        width = user.app.screen.query_one(Scrubber).size.width
        await user.pilot.click(Scrubber, offset=Offset(width // 2, 1))
        await user.sees("past  v5 of 8")
        await user.pilot.click(Scrubber, offset=Offset(width - 1, 1))
        await user.sees("live  v8 of 8")


async def test_a_look_into_the_past_shows_the_document_of_that_moment(
    workspace: Workspace, alice: Toolbox, board: None
) -> None:
    then = workspace.journal.last_seq()
    put(alice, "title", "Sprint 2")
    async with past(workspace.journal, then) as user:
        await user.goes_to("5", "documents")
        await user.sees("Sprint 1", "newest  v8 of 8")
        await user.press("left_square_bracket")
        await user.sees("past  v7 of 8")


async def test_what_agents_wrote_is_shown_as_it_is(workspace: Workspace, alice: Toolbox) -> None:
    create(alice, title="lww_register", body="rga", tags="or_set", config="lww_map")
    hostile = "[bold]x[/] \x1b]0;t\x07 \u202e"
    put(alice, "title", hostile)
    edit(alice, "insert", position=0, text=hostile)
    tag(alice, "add", hostile)
    put(alice, "config", {hostile: hostile})
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.until(lambda: sum("[bold]x[/] ␛]0;t␇" in line for line in user.lines()) >= 4, "all four")
        assert not any("\x1b" in line or "\u202e" in line for line in user.lines())


async def test_the_activity_says_what_an_edit_did(workspace: Workspace, board: None) -> None:
    async with dashboard(workspace) as user:
        await user.sees("body +16", "tags + urgent", "score +5", 'title = "Sprint 1"')


async def test_a_document_that_cannot_be_read_is_told_of(
    root: Path, workspace: Workspace, alice: Toolbox, board: None
) -> None:
    create(alice, "other", text="rga")
    workspace.flush()
    break_content(root, "doc1", 2, b"{", zone="realtime")
    (root / "realtime/.crdt_state/doc1.crdt.json").unlink()
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.is_told("version 2 of the document doc1 cannot be read")
        await user.press("down")
        await user.sees("text  text  0 characters")


async def test_a_checkpoint_that_is_edited_by_hand_is_put_back_while_one_watches(
    root: Path, workspace: Workspace, board: None
) -> None:
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    workspace.flush()
    whole = file.read_bytes()
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("Sprint 1")
        file.write_text("mine now")
        await user.until(lambda: file.read_bytes() == whole, "the file as it was")


async def test_one_very_long_line_holds_up_no_key(workspace: Workspace, alice: Toolbox) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="x" * 1_500_000)
    async with dashboard(workspace) as user:
        await user.goes_to("5", "documents")
        await user.sees("1,500,000 characters", "xxxxxxxxxxxxxxxx")
        await user.press("enter", "down", "l", "left_square_bracket")
        await user.sees("past  v1 of 2")
