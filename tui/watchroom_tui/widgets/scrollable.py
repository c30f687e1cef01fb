"""The base of scrollable line-drawn widgets."""

from __future__ import annotations

from textual.scroll_view import ScrollView

from watchroom_tui.actions import VIEW_BINDINGS
from watchroom_tui.widgets.line_widget import LineWidget


class ScrollableWidget(LineWidget, ScrollView, can_focus=True):
    """Scrolls at once, without an animation: a key's answer is on the screen with the next frame."""

    BINDINGS = VIEW_BINDINGS

    def action_scroll_by(self, lines: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True)

    def action_scroll_pages(self, pages: int) -> None:
        self.action_scroll_by(pages * max(1, self.content_area.height - 1))

    def action_scroll_sideways(self, cells: int) -> None:
        # Also where there is no scrollbar to show it.
        self.scroll_to(x=self.scroll_offset.x + cells, animate=False, immediate=True, force=True)

    def action_scroll_to_end(self, end: int) -> None:
        self.scroll_to(y=self.virtual_size.height if end else 0, animate=False, immediate=True)
