"""The timeline: any screen shows any earlier moment, marked as such, without acts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from calls import ok
from projections.test_timeline import row
from syrupy.assertion import SnapshotAssertion
from textual.events import MouseDown, MouseMove, MouseUp
from tui.driver import MIDDLE, NARROW, PATIENCE, User, dashboard, past, seqs
from tui.pictures import at_rest
from tui.recorded import recorded
from tui.team import choose_version, write
from watchroom import Toolbox, Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.overview.timeline import marker_kind
from watchroom.kernel.journal import Journal
from watchroom_tui.services.timeline_feed import Moment, TimelineFeed, due_rows
from watchroom_tui.widgets.timeline_bar import LABEL_WIDTH, TimelineBar

SECOND = 1_000_000_000
FAR = 3600 * SECOND


async def at_row(user: User, seq: int) -> None:
    """Wait until the moment of row ``seq`` is shown."""
    await user.until(
        lambda: (user.app.timeline and user.app.timeline.seq, user.model.seq) == (seq, seq), f"row {seq}"
    )
    await user.settle()


def rows_of(workspace: Workspace) -> list[int]:
    return seqs(workspace.journal.rows(limit=10_000))


async def test_rows_and_markers_are_gone_through_and_escape_returns_to_the_present(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    workspace.flush()
    rows = workspace.journal.rows(limit=10_000)
    marked = [each.seq for each in rows if marker_kind(each) is not None]
    async with dashboard(workspace) as user:
        assert not user.shows("row ")
        await user.press("T")
        await user.sees(f"row {rows[-1].seq}", "● live")
        await user.press("comma")
        await at_row(user, rows[-2].seq)
        await user.sees(f"row {rows[-2].seq}: nothing can be changed")
        assert "PAST, " in user.lines()[0]
        assert user.list("activity").items[0].seq == rows[-2].seq
        await user.press("comma", "full_stop")
        await at_row(user, rows[-2].seq)
        await user.press("left_square_bracket")
        await at_row(user, max(seq for seq in marked if seq < rows[-2].seq))
        assert conflict in marked
        await user.press(*["left_square_bracket"] * len(marked))
        await at_row(user, marked[0])
        await user.press(*["right_square_bracket"] * marked.index(conflict))
        await at_row(user, conflict)
        assert user.model.conflicts
        write(alice, "later\n", 3)
        await user.until(lambda: user.app.newest_model.seq > rows[-1].seq, "the present goes on")
        await at_row(user, conflict)
        await user.press("escape")
        await user.has_taken_in(workspace)
        assert user.app.is_live
        assert user.app.timeline is None
        assert not user.shows("PAST")


@pytest.mark.parametrize("screen", ["2 agents", "4 files", "5 documents", "7 requests"])
async def test_the_open_timeline_takes_its_keys_from_every_screen(
    workspace: Workspace, alice: Toolbox, conflict: int, screen: str
) -> None:
    workspace.flush()
    rows = workspace.journal.rows(limit=10_000)
    marked = [each.seq for each in rows if marker_kind(each) is not None]
    async with dashboard(workspace) as user:
        await user.goes_to(*screen.split())
        await user.press("T")
        await user.sees("[ ] event")
        assert user.lines()[-1].count("[") == 1
        await user.press("left_square_bracket")
        await at_row(user, max(seq for seq in marked if seq < rows[-1].seq))
        await user.sees("PAST")


async def test_an_open_timeline_leaves_typed_text_alone(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.press("T", "slash", *"a,b-c[d T", "enter")
        assert user.list("rows").sought == "a,b-c[d T"
        assert user.app.is_live
        assert user.app.timeline is not None


async def test_every_screen_shows_the_moment_and_nothing_of_later_ones(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    ok(alice, "save_to_my_workspace", filename="then.md", content="as it was then\n")
    workspace.flush()
    moment = workspace.journal.last_seq()
    for n in range(30):
        ok(alice, "save_to_my_workspace", filename=f"later{n}.md", content="x")
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) > 30, "rows")
        # Rows that are being read are held back for new rows, but not for an earlier moment.
        await user.press("down", "down", "down")
        await user.press("T", *["comma"] * (workspace.journal.last_seq() - moment))
        await at_row(user, moment)
        await user.until(lambda: seqs(user.list("rows").items)[:1] == [moment], "the rows then")
        await user.goes_to("2", "agents")
        await user.until(lambda: "then.md" in user.words_in("#files"), "the file then")
        assert [each.path for each in user.list("files").items] == ["alice/then.md"]
        await user.until(lambda: max(seqs(user.list("rows").items), default=0) == moment, "its rows then")
        await user.goes_to("1", "overview")
        # It shows its earlier content until it is in front again.
        await user.until(lambda: user.list("activity").items[0].seq == moment, "the rows then")
        await user.press("full_stop")
        await at_row(user, moment + 1)
        assert user.list("activity").items[0].seq == moment + 1
        await user.press("T")
        await user.has_taken_in(workspace)
        assert user.list("activity").items[0].seq == workspace.journal.last_seq()


async def test_acts_are_refused_at_an_earlier_moment_though_the_workspace_is_open(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.sees("R roll back")
        last = workspace.journal.last_seq()
        await user.press("T", "comma")
        await at_row(user, last - 1)
        await user.sees_no("R roll back")
        await user.press("R")
        await user.is_told("This is the past: nothing can be changed here.")
        assert await user.app.act("collab_write", {"filepath": "plan.md", "content": "x"}) is None
        workspace.flush()
        assert workspace.journal.last_seq() == last


@pytest.mark.parametrize("screen", ["1 overview", "2 agents"])
@pytest.mark.parametrize("key", ["p", "X", "m", "K"])
async def test_a_key_that_would_change_something_says_that_this_is_the_past(
    workspace: Workspace, conflict: int, screen: str, key: str
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to(*screen.split())
        await user.press("T", "comma")
        await at_row(user, workspace.journal.last_seq() - 1)
        await user.press(key)
        await user.is_told("This is the past: nothing can be changed here.")


async def test_the_timeline_plays_from_the_first_row_to_the_present(
    workspace: Workspace, conflict: int
) -> None:
    workspace.flush()
    async with dashboard(workspace) as user:
        await user.press("T", "plus", "plus")
        await user.sees("5×")
        await user.press("minus", "comma", "space")
        await user.until(lambda: user.app.is_live, "the end")
        await user.sees("2×", "● live")


def test_playing_follows_the_clock_with_gaps_cut(journal: Journal) -> None:
    told: Queue[Moment] = Queue()
    seconds = 0.0
    rows = seqs(journal.rows(limit=10_000))
    feed = TimelineFeed(journal, told.put, clock=lambda: seconds)
    try:
        feed.go(lambda _: rows[0])
        assert told.get(timeout=PATIENCE).seq == rows[0]
        feed.play(2)
        for seq in rows[1:4]:
            # They are 17 seconds apart, of which two are played.
            seconds += 1.0
            moment = told.get(timeout=PATIENCE)
            assert (moment.seq, moment.model.seq) == (seq, seq)
        seconds += 1000.0
        assert told.get(timeout=PATIENCE).model == read_model(journal, rows[-1])
        assert told.get(timeout=PATIENCE).has_ended
    finally:
        feed.stop()


def test_a_late_timeline_of_an_earlier_visit_is_ignored(journal: Journal) -> None:
    told: Queue[Moment] = Queue()
    feed = TimelineFeed(journal, told.put)
    try:
        feed.go(lambda _: 3)
        assert told.get(timeout=PATIENCE).visit == feed.visit
        feed.leave()
        feed.go(lambda seq: seq + 1)
        moment = told.get(timeout=PATIENCE)
        assert (moment.seq, moment.visit) == (4, feed.visit)
    finally:
        feed.stop()


def test_long_gaps_are_cut_while_playing() -> None:
    rows = [row(1, SECOND), row(2, FAR), row(3, FAR + SECOND // 2), row(4, 2 * FAR)]
    assert due_rows(rows, SECOND, 0) == (1, 0)
    assert due_rows(rows, SECOND, SECOND) == (1, 0)
    assert due_rows(rows, SECOND, 2 * SECOND) == (2, 2 * SECOND)
    assert due_rows(rows, SECOND, 4 * SECOND) == (3, 5 * SECOND // 2)
    assert due_rows(rows, SECOND, 5 * SECOND) == (4, 9 * SECOND // 2)


async def test_the_timeline_is_clicked_and_dragged(workspace: Workspace, conflict: int) -> None:
    workspace.flush()
    first, last = rows_of(workspace)[0], rows_of(workspace)[-1]
    async with dashboard(workspace) as user:
        await user.press("T")
        await user.until(
            lambda: [bar for bar in user.app.screen.query(TimelineBar) if bar.size.width], "the time line"
        )
        await mouse(user, MouseDown, LABEL_WIDTH)
        await at_row(user, first)
        await mouse(user, MouseMove, LABEL_WIDTH + 40)
        await user.until(lambda: first < user.model.seq < last, "a moment between")
        await mouse(user, MouseUp, user.app.size.width - 1)
        await at_row(user, last)


async def mouse(user: User, kind: Any, x: int) -> None:
    """Send a mouse event at column ``x`` of the timeline."""
    bar = user.app.screen.query_one(TimelineBar)
    button = 1
    event = kind(bar, x, 0, 0, 0, button, False, False, False, bar.region.x + x, bar.region.y)
    bar.post_message(event)
    await user.settle()


async def test_two_moments_are_compared(workspace: Workspace, conflict: int) -> None:
    workspace.flush()
    rows = rows_of(workspace)
    async with dashboard(workspace) as user:
        await user.press("T", "B")
        await user.sees("◆")
        await user.press("comma", "comma")
        await at_row(user, rows[-3])
        await user.press("B")
        await user.until(lambda: user.place == "compare", "the comparison")
        await user.press("escape")
        await user.until(lambda: user.place == "overview", "the overview")
        await at_row(user, rows[-3])


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("timeline"))
    yield found
    found.close()


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_pictures(journal: Journal, picture: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with past(journal, journal.last_seq(), size=size) as user:
        rows = journal.rows(limit=10_000)
        marked = [each.seq for each in rows[:-1] if marker_kind(each) is not None]
        await user.press("T", "left_square_bracket", "left_square_bracket", "comma")
        await at_row(user, marked[-2] - 1)
        assert await at_rest(user) == picture


async def test_a_report_is_written_from_the_marked_moment_to_the_shown_one(
    workspace: Workspace, alice: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(alice, "one\n", 0)
    write(alice, "two\n", 0, "later.md")
    workspace.flush()
    rows = rows_of(workspace)
    async with dashboard(workspace) as user:
        await user.press("T", "comma")
        await at_row(user, rows[-2])
        await user.press("W")
        await user.until(lambda: user.place == "TextInputDialog", "the file's name")
        await user.press("enter")
        name = f"report-0-{rows[-2]}.md"
        await user.is_told(name)
        report = (tmp_path / name).read_text("utf-8")
        assert "plan.md" in report
        assert "later.md" not in report
        await user.press("W")
        await user.until(lambda: user.place == "TextInputDialog", "the file's name")
        await user.press("enter")
        await user.is_told("could not be written")
        assert (tmp_path / name).read_text("utf-8") == report
