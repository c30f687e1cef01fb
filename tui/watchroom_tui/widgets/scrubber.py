"""The timeline of a document, with dragging, playback and pause."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip
from watchroom.model import Row

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.line_widget import LineWidget


class Scrubber(LineWidget):
    """Two lines: the current version and its change, and its position in the history."""

    class SeekRequested(Message):
        """Message: the mouse points at this share of the history, from 0 to 1."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._row: Row | None = None
        self._newest = 0
        self._mark = Span("")
        self._progress: float | None = None

    def show(self, row: Row | None, newest: int, mark: Span) -> None:
        """Show the version of ``row``, out of ``newest`` versions. ``mark`` is the state in a word."""
        self._row, self._newest, self._mark = row, newest, mark
        self._progress = None
        self.refresh()

    def show_progress(self, share: float) -> None:
        """Show the share of the history that was read, from 0 to 1."""
        self._progress = share
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._row is None:
            return self.strip((), width)
        return self.strip(self._version_line(self._row) if y == 0 else self._bar(width), width)

    def _version_line(self, row: Row) -> Line:
        texts = texts_of(self)
        return [
            Span(" "),
            self._mark,
            Span(f"  v{row.version:,}", "strong"),
            Span(f" {texts('documents.of', count=f'{self._newest:,}')}  ", "dim"),
            Span(f"{local_clock(row.time)}  ", "dim"),
            Span(sanitize(row.actor), agent_class(row.actor)),
            Span(f"  {labels.row_message(row)}"),
        ]

    def _bar(self, width: int) -> Line:
        space = max(1, width - 4)
        if self._progress is not None:
            done = round(space * self._progress)
            text = fit(texts_of(self)("documents.reading"), space)
            return [Span("  "), Span(text[:done], "cursor"), Span(text[done:], "dim")]
        version = self._row.version or 1 if self._row else 1
        share = (version - 1) / (self._newest - 1) if self._newest > 1 else 1.0
        at = round((space - 1) * share)
        return [
            Span("  "),
            Span("━" * at, "accent"),
            Span("●", "accent"),
            Span("─" * (space - 1 - at), "dim"),
        ]

    def on_click(self, event: events.Click) -> None:
        self._seek(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if event.button:
            self._seek(event)

    def _seek(self, event: events.MouseEvent) -> None:
        space = max(1, self.size.width - 5)
        self.post_message(self.SeekRequested(max(0.0, min(1.0, (event.x - 2) / space))))
