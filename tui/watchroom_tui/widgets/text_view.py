"""A read-only text, drawn by the line: as quick with ten megabytes as with ten lines."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from watchroom_tui.actions import VIEW_BINDINGS
from watchroom_tui.safe import safe_lines
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.drawn import Drawn, content
from watchroom_tui.wording import words_of


class TextView(Drawn, ScrollView, can_focus=True):
    """Shows lines that are safe already. The scroll position stays when the same text changes."""

    BINDINGS = VIEW_BINDINGS

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._title = title
        self._empty = empty
        self._lines: Sequence[Line] = ()
        self._subject: object = None

    def show_text(
        self, subject: object, text: str, *, title: str, changed: frozenset[int] = frozenset()
    ) -> None:
        """Show ``text`` with line numbers; ``changed`` lines (counted from 0) are marked."""
        lines = safe_lines(text)
        digits = len(str(len(lines)))
        self.show_lines(
            subject,
            [
                [
                    Span(f"{number:>{digits}} ", "number"),
                    Span("▌" if number - 1 in changed else " ", "accent"),
                    Span(line),
                ]
                for number, line in enumerate(lines, start=1)
            ],
            title=title,
        )

    def show_lines(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        """Show drawn lines. ``subject`` is what they are about: another one starts at the top."""
        self._lines = lines
        width = max((sum(len(span.text) for span in line) for line in lines[:2000]), default=0)
        self.virtual_size = Size(width, len(lines))
        self._entitle(title)
        if subject != self._subject:
            self._subject = subject
            self.scroll_to(x=0, y=0, animate=False, immediate=True)
        self.refresh()

    def clear(self) -> None:
        self._lines, self._subject = (), None
        self.virtual_size = Size(0, 0)
        self._entitle(words_of(self)(self._title))
        self.refresh()

    @property
    def tab_text(self) -> str:
        """What stands on this pane's tab, where only one pane shows."""
        return words_of(self)(self._title)

    def _entitle(self, title: str) -> None:
        self.border_title = content(title)

    def on_mount(self) -> None:
        self._entitle(words_of(self)(self._title))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        left, top = self.scroll_offset
        index = y + top
        if index < len(self._lines):
            line = self._lines[index]
            under = line[0].style if line and line[0].style.endswith("-line") else ""
            full = max(width + left, sum(len(span.text) for span in line) * 2)
            return self.strip(line, full, under).crop(left, left + width)
        if not self._lines and y == 1:
            return self.strip([Span(" " + words_of(self)(self._empty), "dim")], width)
        return self.strip((), width)

    def action_scroll_by(self, lines: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True)

    def action_scroll_pages(self, pages: int) -> None:
        self.action_scroll_by(pages * max(1, self.size.height - 1))

    def action_scroll_sideways(self, cells: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + cells, animate=False, immediate=True)

    def action_scroll_to_end(self, end: int) -> None:
        self.scroll_to(y=self.virtual_size.height if end else 0, animate=False, immediate=True)
