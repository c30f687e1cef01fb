"""The outline of a board: its headings, to jump to."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from textual import on
from textual.app import ComposeResult
from watchroom_whiteboards.outline import Heading

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList


class HeadingList(ItemList[Heading]):
    WRAPS = "never"

    def item_key(self, item: Heading) -> Hashable:
        return item.start

    def cells(self, item: Heading) -> Sequence[Line]:
        style = "title" if item.level == 1 else "strong" if item.level == 2 else ""
        return ([Span("  " * (item.level - 1) + " "), Span(sanitize(item.title), style), Span("")],)

    def item_text(self, item: Heading) -> str:
        return item.title


class OutlineDialog(ModalDialog[int | None]):
    """List of headings. The result is the position of the chosen heading, or None if the person goes back."""

    BINDINGS = bindings("dialog")

    def __init__(self, headings: Sequence[Heading], at: int) -> None:
        """``at``: the current position in the text."""
        super().__init__()
        self._headings = headings
        self._at = at

    def compose(self) -> ComposeResult:
        yield HeadingList(title="pane.outline", empty="empty.outline", id="outline", classes="pane")

    def on_mount(self) -> None:
        headings = self.query_one(HeadingList)
        headings.show(self._headings)
        before = [each for each in self._headings if each.start <= self._at]
        if before:
            headings.move_to(before[-1].start)
        headings.focus()

    def action_back(self) -> None:
        self.dismiss(None)

    @on(ItemList.Opened)
    def choose(self) -> None:
        heading = self.query_one(HeadingList).item
        self.dismiss(heading.start if heading else None)
