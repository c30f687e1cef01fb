"""The base of all screens. It loads data in workers, reads styles with the first instance, and reports a
terminal that is too small."""

from __future__ import annotations

from typing import TypeVar

from textual import events, on
from textual.messages import Prune
from textual.screen import Screen

from watchroom_tui.textual_compat import add_breakpoint_classes, note_styles_read
from watchroom_tui.widgets.size_notice import SizeNotice, is_too_small

Result = TypeVar("Result")


class WorkerScreen(Screen[Result]):
    """Screen that cancels its workers before its panes are removed. A worker that ends later would look for
    the panes."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-high")]  # noqa: RUF012  # as textual has it

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name, id, classes)
        stylesheet = self.app.stylesheet
        # Textual would parse all other stylesheets again for each new stylesheet.
        for path in self.css_path:
            if not stylesheet.has_source(str(path)):
                stylesheet.add_source(path.read_text("utf-8"), (str(path), ""))
        # New widgets are styled when they are mounted. Otherwise everything would be parsed again.
        note_styles_read(self)
        add_breakpoint_classes(self)

    @property
    def is_in_front(self) -> bool:
        """Whether the screen is shown without an overlay. False while the dashboard closes."""
        return self.app.screen_stack[-1:] == [self]

    @on(events.Resize)
    def notice_small_size(self, event: events.Resize) -> None:
        """Show the notice if the terminal is too small."""
        if is_too_small(event.size) and self.is_in_front:
            self.app.push_screen(SizeNotice())

    async def on_prune(self, event: Prune) -> None:
        self.workers.cancel_node(self)
