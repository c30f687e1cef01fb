"""The panes of a merge: base, current and incoming side by side, and the result below. All panes scroll
together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.message import Message
from watchroom.algorithms.merge import Regions

from watchroom_tui.keys.actions import Scope
from watchroom_tui.presentation.localization import keymap_of, texts_of
from watchroom_tui.screens.merge.measures import RegionMeasures
from watchroom_tui.screens.merge.region_drawing import RegionDrawing, ResultDrawing, Side, SideDrawing
from watchroom_tui.screens.merge.state import RegionLayout
from watchroom_tui.widgets.text_pane import TextPane


class RegionPane(TextPane):
    """One text of a merge, region by region."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ()
    IS_SEARCHABLE = False

    class Pointed(Message):
        """A region was clicked."""

        def __init__(self, region: int) -> None:
            super().__init__()
            self.region = region

    def __init__(self, *, id: str, classes: str = "pane") -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.others: Sequence[RegionPane] = ()
        """The panes that scroll with this one. Calls are direct: a message would arrive a frame later."""
        self._regions: Regions = ()
        self._layout = RegionLayout(())
        self._at = 0
        self.on_scrolled: Callable[[], None] = lambda: None
        """Called before the person scrolls this pane."""
        self._follows = False
        self._revealed: int | None = None
        """The region that stays in view at each new size, until the person scrolls."""
        self._named = ""

    @abstractmethod
    def draw(self, measures: RegionMeasures, at: int) -> RegionDrawing:
        """Return the drawing of this text. ``at``: the current region."""

    def show(self, measures: RegionMeasures, at: int) -> None:
        """Show the measured regions. ``at``: the current region."""
        if measures.regions is self._regions and at == self._at:
            return
        is_first = not self._regions
        self._regions, self._at = measures.regions, at
        drawing = self.draw(measures, at)
        self._layout = drawing.layout
        self.show_drawing("merge", drawing, title=self._named)
        if is_first:
            self.reveal(at)

    def set_title(self, title: str) -> None:
        """Show ``title``. This method sanitizes it."""
        self._named = title
        self._entitle(title)

    @property
    def tab_text(self) -> str:
        """The name on this pane's tab."""
        return self._named

    def reveal(self, region: int) -> None:
        """Scroll a region into view, a third of the pane from its top. It stays in view at each new size,
        until the person scrolls."""
        if not self._regions:
            return
        self._revealed = region
        if not self.size:
            return
        start, height = self._layout.start(region), self._layout.height(region)
        top, space = self.scroll_offset.y, max(1, self.content_area.height)
        if start < top or start + min(height, space) > top + space:
            self._follow(max(0, start - space // 3))

    def on_resize(self) -> None:
        # The layout may come any number of frames after the change that requires it.
        if self._revealed is not None:
            self.reveal(self._revealed)

    def forget_reveal(self) -> None:
        """Stay at the person's scroll position at each new size."""
        self._revealed = None

    @property
    def place(self) -> tuple[int, int]:
        """The region at the top of the pane, and the number of its rows above the top."""
        return self._layout.at(min(int(self.scroll_offset.y), max(0, self._layout.rows - 1)))

    def follow(self, other: RegionPane) -> None:
        """Scroll to the place of ``other``. Scroll to an end if ``other`` is at that end, because the pane
        sizes may differ."""
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
        """The number of cells before each line."""
        return self._drawing.gutter(0) if self._drawing is not None else 0

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y + self.scroll_offset.y < self._layout.rows:
            region, _ = self._layout.at(offset.y + self.scroll_offset.y)
            self.post_message(self.Pointed(region))


class SidePane(RegionPane):
    """The base text, the current text or the incoming text."""

    def __init__(self, side: Side) -> None:
        super().__init__(id=side)
        self._side: Side = side

    def draw(self, measures: RegionMeasures, at: int) -> RegionDrawing:
        return SideDrawing(measures, at, self._side)


class ResultPane(RegionPane):
    """The text to commit. An open region offers actions to decide it."""

    def draw(self, measures: RegionMeasures, at: int) -> RegionDrawing:
        return ResultDrawing(measures, at, texts_of(self), keymap_of(self))
