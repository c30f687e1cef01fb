"""The panes of a merge: base, current and incoming beside each other, and the result below.

Drawn by the line, so that a hundred thousand lines scroll as ten do; words are compared in the lines that
are in view only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from watchroom.algorithms.merge import Lines, Region, Regions, find_changed_words

from watchroom_tui.formatters.diff_drawing import NO_END
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.presentation.localization import keymap_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.merge.measures import RegionMeasures
from watchroom_tui.screens.merge.state import RegionLayout, is_included
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.scrollable import ScrollableWidget

Side: TypeAlias = Literal["base", "current", "incoming"]
COMPARED: Final = 200
"""So many lines of each side are asked how they end."""

OFFERED: Final = ("take_current", "take_incoming", "take_both", "take_neither", "edit")
"""What an open region says can be done with it."""


class RegionPane(ScrollableWidget):
    """One text of a merge, region by region."""

    class Pointed(Message):
        """A region was clicked."""

        def __init__(self, region: int) -> None:
            super().__init__()
            self.region = region

    def __init__(self, *, id: str, classes: str = "pane") -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.others: Sequence[RegionPane] = ()
        """The panes that follow where the person scrolls this one, at once: a message would come a frame
        later."""
        self._regions: Regions = ()
        self._layout = RegionLayout(())
        self._numbers = [0]
        self._at = 0
        self.on_scrolled: Callable[[], None] = lambda: None
        """Called before the person scrolls this pane."""
        self._follows = False
        self._to_reveal: int | None = None
        """A region to bring into view as soon as the pane has a size."""
        self._title = ""

    @abstractmethod
    def lines_of(self, region: Region) -> Lines:
        """The region's lines in this text."""

    @abstractmethod
    def select_layout(self, measures: RegionMeasures) -> RegionLayout:
        """Where the regions stand in this pane."""

    @abstractmethod
    def draw(self, region: Region, row: int) -> Line:
        """The text of one of the region's rows."""

    def show(self, measures: RegionMeasures, at: int) -> None:
        """Show the regions that were measured; the person is at region ``at``."""
        regions, layout = measures.regions, self.select_layout(measures)
        if regions is self._regions and at == self._at:
            return
        self._at = at
        is_first = not self._regions
        self._regions = regions
        if layout is not self._layout:
            self._layout = layout
            self._numbers = [0, *accumulate(len(self.lines_of(region)) for region in regions)]
        self.virtual_size = Size(measures.longest + self.gutter_width, layout.rows)
        if is_first:
            self.reveal(at)
        self.refresh()

    def set_title(self, title: str) -> None:
        """Give the pane a title, which is made safe here."""
        self._title = title
        self.border_title = content(title)

    @property
    def tab_text(self) -> str:
        """The pane's name, where there are tabs."""
        return self._title

    def reveal(self, region: int) -> None:
        """Bring a region into view, a third of the pane from its top."""
        if not self._regions:
            return
        if not self.size:
            self._to_reveal = region
            return
        start, height = self._layout.start(region), self._layout.height(region)
        top, space = self.scroll_offset.y, max(1, self.content_area.height)
        if start < top or start + min(height, space) > top + space:
            self._follow(max(0, start - space // 3))

    def on_resize(self) -> None:
        if self._to_reveal is not None:
            region, self._to_reveal = self._to_reveal, None
            self.reveal(region)

    def forget_reveal(self) -> None:
        """Stay where the person scrolls to, also if the pane gets its size only then."""
        self._to_reveal = None

    @property
    def place(self) -> tuple[int, int]:
        """What is at the top: the region, and how many of its rows are above."""
        return self._layout.at(min(int(self.scroll_offset.y), max(0, self._layout.rows - 1)))

    def follow(self, other: RegionPane) -> None:
        """Scroll to where another pane is; at its ends, to the ends: it may be higher or wider."""
        region, rows_above = other.place
        y = self._layout.start(region) + min(rows_above, self._layout.height(region) - 1)
        x = other.scroll_offset.x
        is_at_bottom = 0 < other.max_scroll_y <= other.scroll_offset.y
        is_at_right = 0 < other.max_scroll_x <= x
        self._follow(self.max_scroll_y if is_at_bottom else y, self.max_scroll_x if is_at_right else x)

    def action_scroll_by(self, lines: int) -> None:
        self.on_scrolled()
        super().action_scroll_by(lines)

    def action_scroll_to_end(self, end: int) -> None:
        self.on_scrolled()
        super().action_scroll_to_end(end)

    def on_mouse_scroll_down(self) -> None:
        self.on_scrolled()

    def on_mouse_scroll_up(self) -> None:
        self.on_scrolled()

    def _follow(self, y: int, x: float | None = None) -> None:
        self._follows = True
        self.scroll_to(x=x, y=y, animate=False, immediate=True, force=True)
        self._follows = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # Textual leaves it where it was as long as it is not shown.
        self.vertical_scrollbar.position = new_value
        self._lead(old_value, new_value)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_x(old_value, new_value)
        self._lead(old_value, new_value)

    def _lead(self, before: float, after: float) -> None:
        if self._regions and not self._follows and before != after:
            for pane in self.others:
                pane.follow(self)

    @property
    def gutter_width(self) -> int:
        """How many cells stand before each line."""
        return len(str(self._numbers[-1])) + 3

    def render_line(self, y: int) -> Strip:
        width = self.content_area.width
        left, top = self.scroll_offset
        if y + top >= self._layout.rows:
            return self.strip((), width)
        index, row = self._layout.at(y + top)
        region = self._regions[index]
        is_here = index == self._at and (region.kind != "unchanged" or region.choice is not None)
        under = "cursor-idle" if is_here else ""
        gutter = self.strip(self._gutter(index, region, row, is_here), self.gutter_width, under)
        text = self.draw(region, row)
        free = width - gutter.cell_length
        length = sum(cell_len(span.text) for span in text)
        body = self.strip(text, max(free + left, length), under)
        if length > left + free:
            body = Strip([*body.crop(left, left + free - 1), *self.strip([Span("…", "dim")], 1, under)])
        else:
            body = body.crop(left, left + free)
        return Strip([*gutter, *body], width)

    def _gutter(self, index: int, region: Region, row: int, is_here: bool) -> Line:
        digits = self.gutter_width - 3
        has_line = row < len(self.lines_of(region))
        number = str(self._numbers[index] + row + 1) if has_line else ""
        mark = Span("▸" if row == 0 else " ", "accent") if is_here else Span(" ")
        state = Span("▌", state_of(region)) if region.kind != "unchanged" or region.choice else Span(" ")
        return [mark, Span(f"{number:>{digits}}", "number"), state, Span(" ")]

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y + self.scroll_offset.y < self._layout.rows:
            region, _ = self._layout.at(offset.y + self.scroll_offset.y)
            self.post_message(self.Pointed(region))


class SidePane(RegionPane):
    """The base, the current text or the incoming one."""

    def __init__(self, side: Side) -> None:
        super().__init__(id=side)
        self._side: Side = side

    def lines_of(self, region: Region) -> Lines:
        lines: Lines = getattr(region, self._side)
        return lines

    def select_layout(self, measures: RegionMeasures) -> RegionLayout:
        return measures.sides

    def draw(self, region: Region, row: int) -> Line:
        lines = self.lines_of(region)
        if row >= len(lines):
            return []
        line = lines[row].rstrip("\r\n")
        if region.kind == "unchanged":
            return [Span(sanitize(line))]
        end = _end_of(lines[row], region)
        if region.choice is not None and not is_included(region, self._side):
            return [Span(sanitize(line), "dim"), end]
        if self._side == "base" or lines == region.base:
            return [Span(sanitize(line), "" if region.is_open else "dim"), end]
        others = region.base or self._opposite(region)
        return [*marked_words(others[row].rstrip("\r\n") if row < len(others) else "", line), end]

    def _opposite(self, region: Region) -> Lines:
        return region.incoming if self._side == "current" else region.current


class ResultPane(RegionPane):
    """What will be committed; a region that is open says how to decide it."""

    def lines_of(self, region: Region) -> Lines:
        return region.text if region.is_open else region.result

    def select_layout(self, measures: RegionMeasures) -> RegionLayout:
        return measures.result

    def draw(self, region: Region, row: int) -> Line:
        words = texts_of(self)
        if region.is_open and not region.text:
            keymap = keymap_of(self)
            keys = " · ".join(
                f"{shown_key(each, keymap)} {words(f'action.{each}.label')}" for each in OFFERED
            )
            return [Span(f"‹ {words('merge.choose', keys=keys)} ›", "warning")]
        if region.is_open:
            return [Span(sanitize(region.text[row].rstrip("\r\n")), "warning")]
        if row >= len(region.result):
            changed = region.choice or region.kind != "unchanged"
            return [Span(f"‹ {words('merge.nothing')} ›", "dim")] if changed else []
        line = sanitize(region.result[row].rstrip("\r\n"))
        if region.choice == "edited":
            return [Span(line, "accent")]
        return [Span(line, "" if region.result == region.current else "added")]


def _end_of(line: str, region: Region) -> Span:
    """How the line ends, where the sides end their lines differently: that may be all that differs."""
    sides = [side[:COMPARED] for side in (region.base, region.current, region.incoming)]
    if len({_ending(each) for side in sides for each in side}) < 2:
        return Span("")
    return Span({"\n": "", "\r\n": "␍", "": NO_END}[_ending(line)], "dim")


def _ending(line: str) -> str:
    if line.endswith("\n"):
        return "\r\n" if line.endswith("\r\n") else "\n"
    return ""


def marked_words(old: str, new: str) -> Iterator[Span]:
    """``new`` with the words marked that ``old`` has not."""
    at = 0
    for start, end in [*find_changed_words(old, new), (len(new), len(new))]:
        for text, style in ((new[at:start], ""), (new[start:end], "added-word")):
            if text:
                yield Span(sanitize(text), style)
        at = end


def state_of(region: Region) -> str:
    """The style of a region's mark: open, decided by a person, or taken because one side changed it alone."""
    if region.is_open:
        return "error"
    return "ok" if region.choice else "accent"
