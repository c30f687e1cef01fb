"""A read-only text, drawn by the line: as quick with ten megabytes as with ten lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual.geometry import Size
from textual.strip import Strip

from watchroom_tui.columns import wrap
from watchroom_tui.localization import texts_of
from watchroom_tui.sanitize import sanitize_lines
from watchroom_tui.styled_text import Line, Span, wrapped
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.scrollable import ScrollableWidget

MOST_WRAPPED: Final = 20_000
"""Texts of more lines are not wrapped at the edge of the pane: that would take longer than a key may."""

LONGEST: Final = 2000
"""Longer lines are wrapped even then: each is drawn whole, wherever it is scrolled to."""

MEASURED: Final = 2000
"""So many lines are measured to know how far there is to scroll sideways."""


class _Source(NamedTuple):
    texts: list[str]
    head: Sequence[Line]
    changed: frozenset[int]
    marks: re.Pattern[str] | None = None


def _width(line: Line) -> int:
    return sum(cell_len(span.text) for span in line)


def _pieces(text: str, marks: re.Pattern[str] | None) -> Line:
    """The text, with what is marked standing out."""
    if marks is None:
        return [Span(text)]
    found: list[Span] = []
    at = 0
    for each in marks.finditer(text):
        found += [Span(text[at : each.start()]), Span(each[0], "match-here")]
        at = each.end()
    return [*found, Span(text[at:])]


class TextView(ScrollableWidget):
    """Shows lines that are safe already. The scroll position stays when the same text changes."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._title = title
        self._empty = empty
        self._lines: Sequence[Line] = ()
        self._subject: object = None
        self._source: _Source | None = None
        self._wrapped_at = 0

    def show_text(
        self,
        subject: object,
        text: str,
        *,
        title: str,
        head: Sequence[Line] = (),
        changed: frozenset[int] = frozenset(),
        marks: re.Pattern[str] | None = None,
    ) -> None:
        """Show ``text`` below ``head``, with line numbers and long lines wrapped; ``changed`` lines (counted
        from 0) are marked, and what ``marks`` finds in a line stands out. ``subject`` is what it is about:
        another one starts at the top."""
        self._show(_Source(sanitize_lines(text), head, changed, marks), subject, title)

    def show_notice(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        """Show drawn lines, wrapped where they are long. ``subject`` as above."""
        self._show(_Source([], lines, frozenset()), subject, title)

    def show_lines(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        """Show drawn lines as they are. ``subject`` as above."""
        self._source = None
        self._lines = lines
        self._present(subject, title)

    def _show(self, source: _Source, subject: object, title: str) -> None:
        self._source = source
        self._wrap()
        self._present(subject, title)

    def _present(self, subject: object, title: str) -> None:
        self._measure()
        self._entitle(title)
        if subject != self._subject:
            self._subject = subject
            self.scroll_to(x=0, y=0, animate=False, immediate=True)
        self.refresh()

    def _measure(self) -> None:
        """Say how far there is to scroll."""
        is_wrapped = self._source is not None and len(self._source.texts) <= MOST_WRAPPED
        longest = 0 if is_wrapped else max((_width(line) for line in self._lines[:MEASURED]), default=0)
        self.virtual_size = Size(longest, len(self._lines))

    def _wrap(self) -> None:
        """Lay the text out for the width that there is."""
        if self._source is None:
            return
        self._wrapped_at = self.content_area.width
        texts, head, changed, marks = self._source
        digits = len(str(len(texts)))
        width = self._wrapped_at - digits - 2
        if len(texts) > MOST_WRAPPED:
            width = max(width, LONGEST)
        lines: list[Line] = [part for line in head for part in wrapped(line, self._wrapped_at)]
        for number, text in enumerate(texts):
            for part, piece in enumerate(wrap(text, width)):
                shown = f"{number + 1:>{digits}} " if part == 0 else " " * (digits + 1)
                mark = Span("▌", "accent") if number in changed else Span(" ")
                lines.append([Span(shown, "number"), mark, *_pieces(piece, marks)])
        self._lines = lines

    def on_resize(self) -> None:
        if self._source is not None and self.content_area.width != self._wrapped_at:
            self._wrap()
            self._measure()
            self.refresh()

    def watch_show_vertical_scrollbar(self) -> None:
        # Its cell is one less to write in, and no event says so.
        self.call_after_refresh(self.on_resize)

    def clear(self) -> None:
        self._lines, self._subject, self._source = (), None, None
        self.virtual_size = Size(0, 0)
        self._entitle(texts_of(self)(self._title))
        self.refresh()

    @property
    def tab_text(self) -> str:
        """What stands on this pane's tab, where only one pane shows."""
        return texts_of(self)(self._title)

    def _entitle(self, title: str) -> None:
        self.border_title = content(title)

    def on_mount(self) -> None:
        self._entitle(texts_of(self)(self._title))

    def render_line(self, y: int) -> Strip:
        width = self.content_area.width
        left, top = self.scroll_offset
        index = y + top
        if index < len(self._lines):
            line = self._lines[index]
            under = line[0].style if line and line[0].style.endswith("-line") else ""
            full = max(width + left, _width(line))
            return self.strip(line, full, under).crop(left, left + width)
        if not self._lines and y == 1:
            return self.strip([Span(" " + texts_of(self)(self._empty), "dim")], width)
        return self.strip((), width)
