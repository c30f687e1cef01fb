"""The base of all screens: they load data in workers, have their styles read when the first of them is made,
and say when the terminal is too small for them."""

from __future__ import annotations

from typing import TypeVar

from textual import events, on
from textual.messages import Prune
from textual.screen import Screen

from watchroom_tui.widgets.size_notice import SizeNotice, is_too_small

Result = TypeVar("Result")


class WorkerScreen(Screen[Result]):
    """What it still works on is cancelled before its panes go, which are removed before the screen is. A
    reading that comes back meanwhile would look for them."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-high")]  # noqa: RUF012  # as textual has it

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name, id, classes)
        stylesheet, size = self.app.stylesheet, self.app.size
        # Before Textual does: for each that comes it would parse all others once more.
        for path in self.css_path:
            if not stylesheet.has_source(str(path)):
                stylesheet.add_source(path.read_text("utf-8"), (str(path), ""))
        # What is new is styled as it is mounted; that, too, would have everything parsed again.
        self._css_update_count = self.app._css_update_count
        # Textual has these only after the first layout: then all would be styled and laid out once more.
        self.add_class(
            *self._get_breakpoint_classes(size.width, self.HORIZONTAL_BREAKPOINTS or []), update=False
        )
        self.add_class(*self._get_breakpoint_classes(size.height, self.VERTICAL_BREAKPOINTS), update=False)

    @property
    def is_in_front(self) -> bool:
        """Whether it is shown with nothing over it. Of a dashboard that closes there is no such screen."""
        return self.app.screen_stack[-1:] == [self]

    @on(events.Resize)
    def notice_small_size(self, event: events.Resize) -> None:
        """Say it where there is too little space for it."""
        if is_too_small(event.size) and self.is_in_front:
            self.app.push_screen(SizeNotice())

    async def on_prune(self, event: Prune) -> None:
        self.workers.cancel_node(self)
