"""A rendered board on the screen: scrolled, searched, and changed while it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest
from textual.app import ComposeResult
from textual.strip import Strip
from tui.board_app import BoardApp
from tui.driver import MIDDLE, NARROW, WIDE, User
from watchroom_tui.app import WatchroomApp
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.markdown import code
from watchroom_tui.markdown.board_drawing import BoardDrawing
from watchroom_tui.widgets.line_widget import StyleRegistry
from watchroom_tui.widgets.text_pane import TextPane
from watchroom_whiteboards.outline import Heading

SECTIONS = 4000
LONG = b"# The board\n\n" + b"".join(
    b"## Section %d\n\nWords of section %d, and more.\n\n- [ ] task %d\n\n" % (each, each, each)
    for each in range(SECTIONS)
)


class Reader(User):
    """A person in front of a board."""

    @property
    def app_of_board(self) -> BoardApp:
        return cast("BoardApp", self.app)

    @property
    def view(self) -> TextPane:
        return self.app_of_board.board

    def text(self) -> list[str]:  # type: ignore[override]  # the lines within the frame
        return [line[1:-2].strip() for line in self.lines()[1:-1]]

    async def shows_all(self) -> None:
        """Wait until the whole board is known."""
        await self.until(lambda: len(self.outline()), "the board")
        await self.settle()

    def outline(self) -> Sequence[Heading]:
        drawing = self.view.drawing
        return drawing.outline() if isinstance(drawing, BoardDrawing) else ()

    async def edit(self, data: bytes) -> None:
        self.app_of_board.show(data)
        await self.settle()


@asynccontextmanager
async def board(data: bytes, size: tuple[int, int] = MIDDLE) -> AsyncIterator[Reader]:
    app = BoardApp(data)
    async with app.run_test(size=size) as pilot:
        reader = Reader(cast("WatchroomApp", app), pilot)
        await reader.settle()
        yield reader


class Recorded(TextPane):
    """Records every line that it painted."""

    def __init__(self, *, title: str, empty: str, id: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id)
        self.painted: list[str] = []

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        self.painted.append(strip.text.strip())
        return strip


class RecordedApp(BoardApp):
    def compose(self) -> ComposeResult:
        yield Recorded(title="pane.preview", empty="empty.preview", id="board")
        yield StyleRegistry()


async def test_a_board_is_never_painted_for_another_width() -> None:
    app = RecordedApp(b"# The board of the checkout team\n\nWords that go far across the screen.\n")
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        painted = cast("Recorded", app.board).painted
        assert painted[0] == "The board of the checkout team"
        assert "checkout" not in painted


def at(number: int) -> int:
    return LONG.index(b"## Section %d\n" % number)


async def test_keys_scroll_by_lines_and_pages_and_to_the_ends() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        top = reader.text()
        assert top[:4] == ["The board", "━" * 115, "", "Section 0"]
        await reader.press("down", "j")
        assert reader.text()[:-2] == top[2:]
        await reader.press("up", "k")
        assert reader.text() == top
        await reader.press("pagedown")
        page = reader.text()
        assert page[0] == top[-1]
        await reader.press("pageup")
        assert reader.text() == top
        await reader.press("G")
        assert reader.text()[-1] == f"☐ task {SECTIONS - 1}"
        await reader.press("up")
        assert reader.text()[-1] != f"☐ task {SECTIONS - 1}"
        await reader.press("down", "down", "down")
        assert reader.text()[-1] == f"☐ task {SECTIONS - 1}"
        await reader.press("g")
        assert reader.text() == top


async def test_the_end_is_shown_as_soon_as_it_is_known() -> None:
    async with board(b"x") as reader:
        reader.app_of_board.board.show_drawing("another", BoardDrawing(LONG), title="another")
        await reader.press("G")
        await reader.until(lambda: reader.text()[-1] == f"☐ task {SECTIONS - 1}", "the end")


async def test_the_scrollbar_and_the_wheel_lead_where_they_say() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        view = reader.view
        view.scroll_to(y=view.max_scroll_y // 2, animate=False, immediate=True)
        await reader.settle()
        middle = view.top_anchor / len(LONG)
        assert 0.3 < middle < 0.7
        view.scroll_to(y=view.max_scroll_y, animate=False, immediate=True)
        await reader.settle()
        assert view.top_anchor / len(LONG) > 0.99
        view.scroll_to(y=0, animate=False, immediate=True)
        await reader.settle()
        assert view.top_anchor == 0


async def test_the_wheel_moves_by_its_lines_where_nothing_is_drawn_yet() -> None:
    # Paragraphs of many short lines are drawn as few, so that the estimated heights are far from the real ones.
    data = b"".join(b"## Section %d\n\n" % each + b"word %d\n" % each * 30 + b"\n" for each in range(2000))
    async with board(data) as reader:
        await reader.shows_all()
        view = reader.view
        for number, lines in ((1000, -5), (1500, -30), (500, 60)):
            view.show_anchor(data.index(b"## Section %d\n" % number))
            await reader.settle()
            before = reader.text()
            view.scroll_to(y=view.scroll_offset.y + lines, animate=False, immediate=True)
            await reader.settle()
            assert reader.text() != before
            await reader.press(*["down" if lines < 0 else "up"] * abs(lines))
            assert reader.text() == before


async def test_what_is_beyond_the_first_megabyte_is_reached_in_every_way() -> None:
    data = LONG * (2_500_000 // len(LONG)) + b"# The last\n\nThe needle.\n"
    async with board(data) as reader:
        await reader.shows_all()
        assert await reader.view.search("needle") == 1
        assert reader.view.go_to_match(1)
        await reader.sees("The needle.")
        await reader.press("g")
        assert reader.text()[0] == "The board"
        await reader.press("G")
        assert reader.text()[-1] == "The needle."
        await reader.press("g")
        reader.view.show_anchor(reader.outline()[-1].start)
        await reader.sees("The last")


async def test_the_outline_leads_to_its_headings() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        outline = reader.outline()
        assert len(outline) == SECTIONS + 1
        assert [each.title for each in outline[:3]] == ["The board", "Section 0", "Section 1"]
        heading = outline[2500]
        reader.view.show_anchor(heading.start)
        await reader.settle()
        assert reader.text()[0] == heading.title == "Section 2499"
        assert reader.view.top_anchor == heading.start


async def test_an_edit_above_or_below_moves_nothing_on_the_screen() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        reader.view.show_anchor(at(2000))
        await reader.press("down", "down")
        before = reader.text()
        await reader.edit(b"# New above\n\nMany words.\n\n" * 300 + LONG)
        assert reader.text() == before
        await reader.shows_all()
        assert reader.text() == before
        await reader.edit(b"# New above\n\nMany words.\n\n" * 300 + LONG + b"# At the end\n")
        assert reader.text() == before
        await reader.edit(LONG)
        assert reader.text() == before
        await reader.press("up", "up")
        assert reader.view.top_anchor == at(2000)


async def test_an_edit_on_the_screen_shows_and_the_top_stays() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        reader.view.show_anchor(at(2000))
        await reader.settle()
        before = reader.text()
        place = LONG.index(b"- [ ] task 2001\n")
        await reader.edit(LONG[:place] + b"- [x] another\n" + LONG[place:])
        after = reader.text()
        assert after[0] == before[0] == "Section 2000"
        assert "☑ another" in after


async def test_an_edit_that_opens_code_shows_the_rest_as_code_and_back() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        await reader.edit(LONG[: at(5)] + b"```\n" + LONG[at(5) :])
        await reader.shows_all()
        assert len(reader.outline()) == 6
        await reader.edit(LONG)
        await reader.shows_all()
        assert len(reader.outline()) == SECTIONS + 1


async def test_another_board_starts_at_the_top() -> None:
    async with board(LONG) as reader:
        await reader.press("pagedown", "pagedown")
        reader.view.show_drawing("another", BoardDrawing(LONG), title="another")
        await reader.settle()
        assert reader.text()[0] == "The board"
        assert reader.shows("another")


async def test_words_are_found_marked_and_gone_to() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        assert await reader.view.search("TASK 12") == 111
        assert reader.view.go_to_match(1)
        await reader.settle()
        assert any("☐ task 12" in line for line in reader.text())
        first = reader.text()
        assert reader.view.go_to_match(1)
        assert reader.view.go_to_match(1)
        await reader.settle()
        assert any("☐ task 121" in line for line in reader.text())
        assert reader.view.go_to_match(-1)
        assert reader.view.go_to_match(-1)
        assert reader.view.go_to_match(-1)
        await reader.settle()
        assert any("☐ task 1299" in line for line in reader.text())
        assert reader.view.go_to_match(1)
        await reader.settle()
        assert first == reader.text()
        assert await reader.view.search("not there") == 0
        assert not reader.view.go_to_match(1)


async def test_matches_are_highlighted_and_the_current_one_more() -> None:
    async with board(b"one word\n\nanother word\n\nno more") as reader:
        await reader.view.search("word")
        reader.view.go_to_match(1)
        reader.view.go_to_match(1)
        await reader.settle()
        grounds = {}
        for y, strip in enumerate(reader.app.screen._compositor.render_strips(reader.app.screen.size)):
            for segment in strip:
                if segment.text == "word" and segment.style:
                    grounds[y] = segment.style.bgcolor
        assert len(grounds) == 2
        assert len(set(grounds.values())) == 2


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_resizing_keeps_what_is_at_the_top(size: tuple[int, int]) -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        reader.view.show_anchor(at(1234))
        await reader.settle()
        await reader.pilot.resize_terminal(*size)
        await reader.settle()
        await reader.until(lambda: reader.text()[0] == "Section 1234", "the same heading at the top")
        assert reader.view.top_anchor == at(1234)


async def test_a_shortened_board_stays_at_its_end() -> None:
    async with board(LONG) as reader:
        await reader.shows_all()
        await reader.press("G")
        await reader.edit(LONG[: at(3)])
        assert reader.text()[0] == "The board"
        assert reader.shows("task 2")


async def test_messages_and_boards_take_turns() -> None:
    async with board(LONG) as reader:
        reader.view.show_notice("message", [[Span("a message")]], title="said")
        await reader.settle()
        assert reader.text()[0] == "a message"
        assert reader.outline() == ()
        reader.app_of_board.show(LONG)
        await reader.sees("Section 0")
        reader.view.clear()
        await reader.settle()
        assert not reader.shows("Section")
        reader.app_of_board.show(b"")
        await reader.settle()
        assert reader.text()[1] != ""


async def test_code_is_highlighted_once_its_lexer_is_loaded() -> None:
    async with board(b"```sql\nSELECT 1;\n```\n") as reader:
        await reader.until(lambda: code.is_ready("sql"), "the colours")

        def colours() -> set[object]:
            strips = reader.app.screen._compositor.render_strips(reader.app.screen.size)
            return {part.style.color for part in strips[1] if part.style and part.text.strip(" │")}

        await reader.until(lambda: len(colours()) > 2, "more than one colour")


async def test_nothing_in_a_board_is_markup_or_can_be_clicked() -> None:
    async with board(b"[@click=app.quit]press[/] [bold] \x1b[31m &#8238;x [a](javascript:x)") as reader:
        await reader.sees("[@click=app.quit]press[/] [bold] ␛[31m ‹RO+202E›x")
        for strip in reader.app.screen._compositor.render_strips(reader.app.screen.size):
            for segment in strip:
                assert not (segment.style and (segment.style.meta or segment.style.link)), segment
