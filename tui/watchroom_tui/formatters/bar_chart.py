"""Numbers over time as a bar chart. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchroom_tui.formatters.styled_text import Line, Span

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_WIDEST: Final = 6
"""Maximum number of cells of a bar."""


class Bar(NamedTuple):
    """A bar: its value, and the label below it if there is space."""

    value: float
    label: str


def draw_bars(
    bars: Sequence[Bar], width: int, height: int, format_value: Callable[[float], str]
) -> list[Line]:
    """Draw ``bars``, oldest first, as ``height`` lines of at most ``width`` cells.

    The first line starts with the value of the highest drawn bar, formatted by ``format_value``. The last
    line has the labels. The oldest bars are left out if space is short.
    """
    margin = max((len(format_value(bar.value)) for bar in bars), default=0) + 1
    rows = height - 1
    if rows < 1 or width < margin + 2 or not bars:
        return []
    step = max(2, min(_WIDEST, (width - margin) // len(bars)))
    shown = bars[-((width - margin) // step) :]
    largest = max(bar.value for bar in shown)
    highest, scale = largest or 1.0, format_value(largest)
    lines: list[Line] = []
    for row in range(rows):
        text = "".join(_cell(bar.value / highest, rows - 1 - row, rows) * (step - 1) + " " for bar in shown)
        head = scale if row == 0 else ""
        lines.append([Span(head.rjust(margin - 1) + " ", "dim"), Span(text, "accent")])
    lines.append([Span(" " * margin + _labels(shown, step), "dim")])
    return lines


def _cell(part: float, row: int, rows: int) -> str:
    """Return one cell of a bar. ``part`` is the bar's share of the highest bar, ``row`` the cell's height
    above the base line."""
    eighths = round(part * rows * 8)
    if part > 0 and row == 0:
        # Small values are visible.
        eighths = max(1, eighths)
    return _EIGHTHS[max(0, min(8, eighths - 8 * row))]


def _labels(shown: Sequence[Bar], step: int) -> str:
    """Return the line of labels. Older labels are left out if they would overlap a newer label."""
    line = [" "] * (len(shown) * step)
    free = len(line)
    for at in range(len(shown) - 1, -1, -1):
        start, label = at * step, shown[at].label
        if start + len(label) <= free:
            line[start : start + len(label)] = label
            free = start - 1
    return "".join(line)
