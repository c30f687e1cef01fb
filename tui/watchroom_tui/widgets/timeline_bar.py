"""The timeline: activity, events, and the current moment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from textual import events
from textual.message import Message
from textual.strip import Strip
from watchroom.features.overview.timeline import MARKER_KINDS, TimelineView

from watchroom_tui.context import TimelineState
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.labels import MARKER_SIGNS
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.widgets.line_widget import LineWidget

LABEL_WIDTH: Final = 25
"""Number of cells of the label with the current moment, at the left."""
BARS: Final = "▁▂▃▄▅▆▇█"


class TimelineBar(LineWidget):
    """Two lines: the current moment at the left, then the events above the activity. Clickable and
    draggable."""

    class SeekRequested(Message):
        """Message: the mouse points at row ``seq``. ``is_dragging``: whether the button is still pressed."""

        def __init__(self, seq: int, *, is_dragging: bool) -> None:
            super().__init__()
            self.seq = seq
            self.is_dragging = is_dragging

    def __init__(self) -> None:
        super().__init__()
        self._state = TimelineState(TimelineView(), None, False, 1, None)
        self._drawn: tuple[TimelineView, int] | None = None
        self._cells: list[tuple[Span, Span]] = []

    def show(self, state: TimelineState) -> None:
        """Show ``state``."""
        self._state = state
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        space = max(1, width - LABEL_WIDTH - 1)
        if self._drawn != (self._state.timeline, space):
            self._drawn = self._state.timeline, space
            self._cells = _cells_of(self._state.timeline, space)
        label = self._moment() if y == 0 else self._playing()
        return self.strip([*label, *self._marked_cells(y, space)], width)

    def _moment(self) -> Line:
        texts, seq = texts_of(self), self._state.seq
        if seq is None:
            sign = Span(fit(f" ● {texts('timeline.newest')}", LABEL_WIDTH), "ok")
        else:
            text = texts("timeline.past", time=local_clock(now_of(self)))
            sign = Span(fit(f" ◷ {text}", LABEL_WIDTH), "warning")
        return [sign]

    def _playing(self) -> Line:
        state = self._state
        sign = "▶" if state.is_playing else "⏸"
        row = f"{state.timeline.last if state.seq is None else state.seq:,}"
        text = texts_of(self)("timeline.row", row=row)
        return [
            Span(f" {sign} {state.speed}× ".ljust(9), "accent" if state.is_playing else "dim"),
            Span(fit(text, LABEL_WIDTH - 9), "strong"),
        ]

    def _marked_cells(self, y: int, space: int) -> Line:
        """Return one of the two lines, with the current moment highlighted."""
        state = self._state
        cells = [each[y] for each in self._cells]
        if state.marked is not None and y == 0:
            cells[self._cell_of(state.marked, space)] = Span("◆", "accent")
        at = self._cell_of(state.timeline.last if state.seq is None else state.seq, space)
        here = cells[at]
        if y == 1:
            cells[at] = Span("┃" if here.text == " " else here.text, "match-here")
        elif here.text == " ":
            cells[at] = Span("▼", "accent")
        else:
            cells[at] = Span(here.text, f"{here.style} cursor")
        return cells

    def _cell_of(self, seq: int, space: int) -> int:
        return min(space - 1, int(self._state.timeline.position_of(seq) * space))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._seek(event, is_dragging=True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if event.button:
            self._seek(event, is_dragging=True)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        self._seek(event, is_dragging=False)

    def _seek(self, event: events.MouseEvent, *, is_dragging: bool) -> None:
        timeline, space = self._state.timeline, max(1, self.size.width - LABEL_WIDTH - 1)
        cell = event.x - LABEL_WIDTH
        if timeline.columns and (cell >= 0 or is_dragging):
            seq = timeline.row_at(1.0 if cell >= space - 1 else max(0.0, cell / space))
            self.post_message(self.SeekRequested(seq, is_dragging=is_dragging))


def _cells_of(timeline: TimelineView, space: int) -> list[tuple[Span, Span]]:
    """Return ``timeline`` as ``space`` cells, each with the sign of its most urgent marker and its
    activity."""
    count = len(timeline.columns)
    if not count:
        return [(Span(" "), Span(" "))] * space
    bounds = [n * count // space for n in range(space + 1)]
    parts = [timeline.columns[begin : max(end, begin + 1)] for begin, end in pairwise(bounds)]
    # If there are more cells than columns, a column covers several cells, and its rows count in each.
    rows = [sum(each.rows for each in part) for part in parts]
    max_rows = max(1, *rows)
    cells = []
    for at, part in enumerate(parts):
        is_new = at == 0 or bounds[at] != bounds[at - 1]
        totals = [sum(each.markers[kind] for each in part) for kind in range(len(MARKER_KINDS))]
        cells.append((_sign(totals) if is_new else Span(" "), _bar(rows[at], max_rows)))
    return cells


def _sign(totals: Sequence[int]) -> Span:
    return next(
        (MARKER_SIGNS[kind] for kind, total in zip(MARKER_KINDS, totals, strict=True) if total), Span(" ")
    )


def _bar(rows: int, max_rows: int) -> Span:
    if not rows:
        return Span(" ")
    # Square root, so that a cell with few rows is visible beside one with thousands.
    height = (rows / max_rows) ** 0.5 * (len(BARS) - 1)
    return Span(BARS[round(height)], "dim")
