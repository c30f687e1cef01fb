"""A notice that the terminal is too small."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

from watchroom_tui.keys.actions import bindings
from watchroom_tui.presentation.localization import texts_of

LEAST_SIZE: Final = Size(40, 12)
"""Minimum size of every screen and dialog, in columns and rows."""


def is_too_small(size: Size) -> bool:
    """Return whether a terminal of this size is smaller than `LEAST_SIZE`."""
    return size.width < LEAST_SIZE.width or size.height < LEAST_SIZE.height


class SizeNotice(ModalScreen[None]):
    """Notice that covers everything until the terminal is large enough, or the person closes it."""

    BINDINGS = bindings("dialog")

    def compose(self) -> ComposeResult:
        yield Static(Content(self._text(self.app.size)), markup=False)

    def on_resize(self, event: events.Resize) -> None:
        self.query_one(Static).update(Content(self._text(event.size)))
        self._close_if_large_enough()

    def on_screen_resume(self) -> None:
        # The terminal may have grown below another screen.
        self._close_if_large_enough()

    def action_back(self) -> None:
        self.dismiss()

    def _close_if_large_enough(self) -> None:
        if self.is_current and not is_too_small(self.app.size):
            self.dismiss()

    def _text(self, size: Size) -> str:
        columns, rows = LEAST_SIZE
        return texts_of(self)(
            "size.too_small", columns=columns, rows=rows, width=size.width, height=size.height
        )
