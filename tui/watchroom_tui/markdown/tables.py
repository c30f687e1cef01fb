"""Tables with natural widths, with narrowed columns, or with one cell below the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom_tui.formatters.styled_text import Span, width_of
from watchroom_tui.markdown.inline import InlineLine, InlineRun, natural_width, wrap_runs

Align: TypeAlias = Literal["left", "center", "right"]

_MIN_WIDTH: Final = 5
"""Minimum width of a narrowed column in cells."""


class TableCell(NamedTuple):
    words: Sequence[InlineRun]


class TableRow(NamedTuple):
    """A row and its source line."""

    cells: Sequence[TableCell]
    source: int


def draw_table(
    head: TableRow, rows: Sequence[TableRow], aligns: Sequence[Align], width: int
) -> list[InlineLine]:
    """Draw the table as lines of at most ``width`` cells."""
    widths = _widths(head, rows, width)
    if widths is None:
        return list(_stack_cells(head, rows, width))
    lines = _row(head, widths, aligns)
    rule = "─┼─".join("─" * each for each in widths)
    lines.append(InlineLine([Span(rule, "rule")], head.source))
    is_wrapped = [_height(row, widths) > 1 for row in rows]
    for number, row in enumerate(rows):
        if number and (is_wrapped[number] or is_wrapped[number - 1]):
            faint = "┈┼┈".join("┈" * each for each in widths)
            lines.append(InlineLine([Span(faint, "rule")], row.source))
        lines += _row(row, widths, aligns)
    return lines


def _widths(head: TableRow, rows: Sequence[TableRow], width: int) -> list[int] | None:
    """Return the width of each column, None if they do not fit side by side."""
    count = len(head.cells)
    space = width - 3 * (count - 1)
    if space < count * min(2, _MIN_WIDTH):
        return None
    natural = [1] * count
    for row in (head, *rows):
        for number, cell in enumerate(row.cells[:count]):
            natural[number] = max(natural[number], natural_width(cell.words))
    if sum(natural) <= space:
        return natural
    if sum(min(each, _MIN_WIDTH) for each in natural) > space:
        return None
    low, high = _MIN_WIDTH, max(natural)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(each, middle) for each in natural) <= space:
            low = middle
        else:
            high = middle - 1
    widths = [min(each, low) for each in natural]
    free = space - sum(widths)
    for number, each in enumerate(natural):
        if free and each > widths[number]:
            widths[number] += 1
            free -= 1
    return widths


def _height(row: TableRow, widths: Sequence[int]) -> int:
    return max(
        (len(wrap_runs(cell.words, width)) for cell, width in zip(row.cells, widths, strict=False)), default=1
    )


def _row(row: TableRow, widths: Sequence[int], aligns: Sequence[Align]) -> list[InlineLine]:
    columns = [wrap_runs(cell.words, width) for cell, width in zip(row.cells, widths, strict=False)]
    lines = []
    for number in range(max((len(column) for column in columns), default=1)):
        spans: list[Span] = []
        for place, (column, width, align) in enumerate(zip(columns, widths, aligns, strict=False)):
            spans += [Span(" │ ", "rule")] if place else []
            words = column[number].spans if number < len(column) else []
            free = max(0, width - width_of(words))
            before = {"left": 0, "center": free // 2, "right": free}[align]
            spans += [Span(" " * before), *words, Span(" " * (free - before))]
        lines.append(InlineLine([span for span in spans if span.text], row.source))
    return lines


def _stack_cells(head: TableRow, rows: Sequence[TableRow], width: int) -> Iterator[InlineLine]:
    """Yield the cells of a table that is too wide, one below the other. The name of the column is before each
    cell."""
    if not rows:
        for cell in head.cells:
            yield from _sourced(wrap_runs(cell.words, width), head.source)
    for number, row in enumerate(rows):
        if number:
            yield InlineLine([Span("┈" * width, "rule")], row.source)
        for name, cell in zip(head.cells, row.cells, strict=False):
            if any(run.text for run in cell.words):
                words = [*name.words, InlineRun(": ", "dim", 0), *cell.words]
                yield from _sourced(wrap_runs(words, width), row.source)


def _sourced(lines: Sequence[InlineLine], source: int) -> Iterator[InlineLine]:
    for line in lines:
        yield line._replace(source=source)
